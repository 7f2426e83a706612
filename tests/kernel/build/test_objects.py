"""Object trees: what they hold before a build, what is compiled again, what is distrusted."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.checksums import file_sha256
from testbed.kernel.build import objects
from testbed.kernel.build.compiler import BuildError
from testbed.kernel.build.objects import KernelRecipe, build_in
from testbed.kernel.build.patches import Patch, PatchError
from testbed.kernel.build.source import DebianSource
from tests.kernel.small_tree import PATCH, write_tree
from tests.kernel.toolchains import find_toolchain

NEW_FILE = "--- /dev/null\n+++ b/more.h\n@@ -0,0 +1 @@\n+#define MORE 1\n"
HEADER = "--- a/answer.h\n+++ b/answer.h\n@@ -1 +1,2 @@\n int answer(void);\n+int more(void);\n"


class Bench:
    """One object tree of the small kernel, and what is built in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "objects"
        (folder / "config").write_text("CONFIG_A=y\n")
        sources = write_tree(folder / "sources")
        self.tarball = folder / "linux.tar.xz"
        with tarfile.open(self.tarball, "w:xz") as archive:
            archive.add(sources, "linux-9.9")
        self.said: list[str] = []

    def build(self, *texts: str, name: str = "root build 1") -> bytes:
        """The binary that comes of the source with these patches."""
        patches = tuple(Patch(f"{n}.patch", f"{n}", text) for n, text in enumerate(texts))
        toolchain = replace(find_toolchain(), name=name)
        source = DebianSource(self.tarball, file_sha256(self.tarball), "linux", "9.9.3", toolchain)
        recipe = KernelRecipe("9.9", source, patches, self.folder / "config")
        compiled = self.tree / "source" / "compiled"
        compiled.unlink(missing_ok=True)
        self.said.clear()
        build_in(
            self.tree, recipe, toolchain=toolchain, binary=self.folder / "linux",
            log=self.folder / "log", jobs=1, progress=self.said.append,
        )  # fmt: skip
        return (self.folder / "linux").read_bytes()

    def compiled(self) -> list[str]:
        """The objects that the last build made."""
        file = self.tree / "source" / "compiled"
        return sorted(file.read_text().split()[1::2]) if file.is_file() else []

    def holds(self) -> dict[str, str]:
        """The sources in the tree."""
        found = (self.tree / "source").glob("*.[ch]")
        return {path.name: path.read_text() for path in sorted(found)}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_only_what_a_patch_touches_is_compiled_again(bench: Bench) -> None:
    plain = bench.build()
    assert bench.compiled() == ["answer.o", "main.o"]
    assert any("unpacking" in line for line in bench.said)
    patched = bench.build(PATCH)
    assert bench.compiled() == ["answer.o"]
    assert patched != plain
    assert not any("unpacking" in line for line in bench.said)
    assert bench.build(PATCH) == patched
    assert bench.compiled() == []
    assert bench.build() == plain
    assert bench.compiled() == ["answer.o"]


def test_what_is_built_in_steps_is_what_is_built_at_once(tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    steps = Bench(tmp_path / "steps")
    for patches in ((), (PATCH,), (HEADER, NEW_FILE), (PATCH, HEADER)):
        last = steps.build(*patches)
    (tmp_path / "once").mkdir()
    once = Bench(tmp_path / "once")
    assert last == once.build(PATCH, HEADER)
    assert steps.holds() == once.holds()


def test_files_that_a_patch_made_go_with_it(bench: Bench) -> None:
    bench.build()
    before = bench.holds()
    bench.build(NEW_FILE, HEADER)
    assert "more.h" in bench.holds()
    bench.build()
    assert bench.holds() == before


def test_a_patch_that_does_not_apply_leaves_the_tree_as_it_was(bench: Bench) -> None:
    patched = bench.build(PATCH)
    before = bench.holds()
    with pytest.raises(PatchError, match=r"answer\.c: hunk 1"):
        bench.build(PATCH, PATCH.replace("return 0", "return 5").replace("return 7", "return 6"))
    assert bench.holds() == before
    assert bench.build(PATCH) == patched
    assert bench.compiled() == []


def test_after_an_error_of_the_compiler_the_tree_is_used_again(bench: Bench) -> None:
    plain = bench.build()
    with pytest.raises(BuildError, match=r"does not compile: answer\.c:2:.*error: .nonsense."):
        bench.build(PATCH.replace("return 7", "return nonsense"))
    assert bench.build() == plain
    assert bench.compiled() == ["answer.o"]


def test_a_build_that_did_not_end_is_not_gone_on_from(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = bench.build()

    def interrupted(*_asked: object) -> Path:
        (bench.tree / "source" / "answer.o").write_bytes(b"half of it")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(objects, "compile_tree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench.build(PATCH)
    assert bench.build() == plain
    assert bench.compiled() == ["answer.o", "main.o"]


@pytest.mark.parametrize("name", ["root build 1", "root build 2"])
def test_another_toolchain_compiles_all_of_it(bench: Bench, name: str) -> None:
    bench.build()
    bench.build(name=name)
    assert len(bench.compiled()) == (0 if name == "root build 1" else 2)


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"source": "x"})])
def test_a_damaged_state_is_no_state(bench: Bench, text: str) -> None:
    plain = bench.build()
    (bench.tree / "state.json").write_text(text)
    assert bench.build() == plain
    assert bench.compiled() == ["answer.o", "main.o"]
