from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.cli.main import main
from testbed.kernel.build.toolchain import read_name
from testbed.setup.parts import KINDS
from tests.hallway import make_services
from tests.kernel.packed import keep_build, keep_programs

CACHE = "cache"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """What was exported on a machine that has built its kernel."""
    maker = tmp_path / "maker"
    keep_build(maker / CACHE)
    keep_programs(maker / CACHE)
    file = tmp_path / "kernel.tar"
    assert main(["kernel", "export", str(file)], make_services(maker)) == 0
    return file


def test_export_says_what_it_wrote_and_where_it_goes(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = pack.read_bytes()
    capsys.readouterr()
    words = ["kernel", "export", str(pack), "--replace"]
    assert main(words, make_services(pack.parent / "maker")) == 0
    assert pack.read_bytes() == before
    first, checksum, then = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{pack}: kernel 7.3 (linux-source-7.3 7.3.")
    assert read_name() in first
    assert checksum.startswith("SHA-256 ")
    assert then.endswith("./run.sh kernel import kernel.tar")


def test_export_does_not_overwrite(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    services = make_services(pack.parent / "maker")
    assert main(["kernel", "export", str(pack)], services) == 2
    assert "--replace" in capsys.readouterr().err
    assert main(["kernel", "export", str(pack), "--replace"], services) == 0


def test_export_names_the_versions_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["kernel", "export", str(tmp_path / "x"), "--kernel-version", "7.4"]
    assert main(words, make_services(tmp_path)) == 2
    assert "there are: 7.3, 6.1" in capsys.readouterr().err


def test_import_says_what_became_of_it(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    services = make_services(tmp_path / "other")
    assert main(["kernel", "import", str(pack)], services) == 0
    (folder,) = (tmp_path / "other" / CACHE / "kernels").glob("7.3-*")
    said = capsys.readouterr().out
    assert said.startswith("kernel 7.3 (linux-source-7.3 ")
    assert said.endswith(f" imported to {folder}\n")
    assert main(["kernel", "import", str(pack)], services) == 0
    assert capsys.readouterr().out.endswith(f" is already there: {folder}\n")


def test_import_says_which_sources_of_the_programs_differ(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = KINDS["programs"]
    more = replace(kind, sources=(*kind.sources, "testbed/lab/__init__.py"))
    monkeypatch.setitem(KINDS, "programs", more)
    capsys.readouterr()
    assert main(["kernel", "import", str(pack)], make_services(tmp_path / "other")) == 0
    _, left = capsys.readouterr().out.splitlines()
    assert left.startswith("The C programs were left out, because this tree has others: ")
    assert "__init__.py" in left
    assert left.endswith("./run.sh compiles them.")


def test_import_refuses_what_is_no_pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a kernel")
    assert main(["kernel", "import", str(file)], make_services(tmp_path)) == 2
    assert f"error: {file}: is no pack of a root or a kernel" in capsys.readouterr().err
    assert not (tmp_path / CACHE).exists()
