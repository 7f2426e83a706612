"""An artifact holds results with what made them, or is refused with every reason."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.base import places, proc
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError
from testbed.results.manifest import load_manifest
from testbed.setup.parts import CachePart
from testbed.setup.root_pack import read_pack
from tests.setup.cached import keep_parts, pack_parts
from wings.packs import artifact
from wings.packs.artifact import pack_artifact, results_in, roots_of
from wings.packs.packing import pack_results, unpack_results
from wings.packs.tests.results import copy_results

ROOT = "debian-13"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def parts(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[CachePart, Path]:
    """Parts that a run would have made."""
    made = keep_parts(cache)
    monkeypatch.setattr(artifact, "gather_parts", lambda *_asked: made)
    return made


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small work tree with one commit; its revision."""
    folder = tmp_path / "tree"
    (folder / "testbed" / "native").mkdir(parents=True)
    (folder / "testbed" / "native" / "init.c").write_text("int main(void) { return 0; }\n")
    shutil.copytree(places.ROOT / "roots" / ROOT, folder / "roots" / ROOT)
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "All")):
        proc.run(("git", "-C", str(folder), *words))
    monkeypatch.setattr(places, "ROOT", folder)
    return proc.run(("git", "-C", str(folder), "rev-parse", "HEAD")).stdout.strip()


@pytest.fixture
def results(tmp_path: Path, parts: Mapping[CachePart, Path], tree: str) -> Path:
    """Results that say that they ran in these parts, at the tree's revision."""
    folder = copy_results(tmp_path / "mine")
    root, kernel, *_ = parts.items()
    change(folder, root=root[0].digest(root[1]), kernel=file_sha256(kernel[1] / "linux"),
           revision=tree)  # fmt: skip
    return folder


def change(folder: Path, *, root: str = "", kernel: str = "", revision: str = "") -> None:
    """Change what results say of what they ran in."""
    file = folder / "manifest.json"
    document = json.loads(file.read_text())
    environment = document["environment"]
    if root:
        document["experiment"]["root"] = ROOT
        environment["parts"]["root"] = root
    if kernel:
        environment["parts"]["kernel.binary_sha256"] = kernel
    if revision:
        environment["facts"] |= {"git_revision": revision, "git_dirty": "no"}
    file.write_text(json.dumps(document))


def write(results: Path, cache: Path, name: str = "mine.tar") -> Path:
    """Pack them."""
    file = results.parent / name
    pack_artifact(results, file, cache, lambda _: None)
    return file


def refused(results: Path, cache: Path) -> str:
    """Why they are not packed."""
    with pytest.raises(ConfigurationError) as caught:
        write(results, cache)
    assert not (results.parent / "mine.tar").exists()
    return "\n".join(caught.value.problems)


def test_it_holds_results_parts_and_source(results: Path, cache: Path, tree: str) -> None:
    file = write(results, cache)
    with tarfile.open(file) as archive:
        assert archive.getnames()[-2:] == ["results.zip", "source.tar.gz"]
        source = archive.extractfile("source.tar.gz")
        assert source is not None
        with tarfile.open(fileobj=io.BytesIO(source.read())) as packed:
            assert f"firstflight-{tree[:12]}/testbed/native/init.c" in packed.getnames()
    alone = results.parent / "alone.zip"
    pack_results(results, alone, places.PAGES, cache / "pages")
    with results_in(file) as inner:
        assert inner.read_bytes() == alone.read_bytes()
        unpack_results(inner, results.parent / "unpacked")
    held = {each.digest for each in read_pack(file).parts}
    assert set(roots_of([load_manifest(results.parent / "unpacked")]).values()) <= held


def test_equal_results_give_equal_artifacts(results: Path, cache: Path) -> None:
    assert write(results, cache).read_bytes() == write(results, cache, "again.tar").read_bytes()


def test_a_machines_kernel_is_not_packed(results: Path, cache: Path) -> None:
    manifest = results / "manifest.json"
    text = manifest.read_text()
    assert '"kernel": "virtual"' in text
    manifest.write_text(text.replace('"kernel": "virtual"', '"kernel": "host"'))
    assert "ran on this machine's kernel, which no file can carry" in refused(results, cache)


def test_another_root_kernel_and_revision_are_all_named(results: Path, cache: Path) -> None:
    change(results, root="0" * 64, kernel="1" * 64, revision="2" * 40)
    said = refused(results, cache)
    assert f"ran with another root {ROOT} ({'0' * 64}) than is here" in said
    assert f"ran with another kernel 7.3 ({'1' * 64}) than is here" in said
    assert f"ran at the revision {'2' * 40}, which this tree's git does not know" in said


def test_parts_of_another_revision_are_not_packed(results: Path, cache: Path) -> None:
    (places.ROOT / "testbed" / "native" / "init.c").write_text("int main(void) { return 1; }\n")
    assert "testbed/native/init.c changed since; git checkout" in refused(results, cache)


def test_results_of_changed_code_are_packed_with_a_note(results: Path, cache: Path) -> None:
    manifest = results / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"git_dirty": "no"', '"git_dirty": "yes"'))
    written = pack_artifact(results, results.parent / "mine.tar", cache, lambda _: None)
    assert "with changes that its source, a commit, has not" in written.contents.notes[-1]


def test_a_pack_without_results_has_none_to_unpack(tmp_path: Path) -> None:
    file = pack_parts(tmp_path / "root.tar", tmp_path / "made")
    with pytest.raises(ConfigurationError, match="holds a root and no results"), results_in(file):
        pass
