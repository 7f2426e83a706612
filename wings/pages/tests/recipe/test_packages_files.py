"""Packages are read into memory: no name leads out of them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.recipe.packages import collect_files, read_files
from wings.pages.tests.recipe.recipes import FILES, tarball


def collect(data: bytes, root: str, limit: int = 10_000) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        return collect_files(archive, Path("x.deb"), root, limit)


def test_only_files_below_the_root_are_read() -> None:
    files = collect(tarball(FILES), "package")
    assert sorted(files) == ["a.css", "a.js", "f.woff2", "img/1.gif", "img/2.gif", "index.html",
                             "not-asked-for.txt"]  # fmt: skip
    assert files["img/1.gif"] == b"GIF89a1"


def test_names_and_links_stay_inside() -> None:
    hostile = {"../../package/x": b"1", "package/../../../etc/passwd": b"2", "/package/y": b"3"}
    links = {"package/passwd": "/etc/passwd", "package/up": "../../../../etc/hostname",
             "package/same": "y", "package/chain": "./same", "package/loop": "loop"}  # fmt: skip
    files = collect(tarball(hostile, links), "package")
    assert files == {"x": b"1", "y": b"3", "same": b"3", "chain": b"3"}


def test_too_much_is_refused() -> None:
    bomb = tarball({"package/a": bytes(1000), "package/b": bytes(1000)})
    assert len(collect(bomb, "package", 2000)) == 2
    with pytest.raises(ConfigurationError, match="more than 1999 bytes"):
        collect(bomb, "package", 1999)


@pytest.mark.parametrize(
    "data", [b"", b"no archive", tarball(FILES)[:100]], ids=["empty", "text", "half"]
)
def test_what_is_no_archive_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.tgz").write_bytes(data)
    with pytest.raises(ConfigurationError, match=r"x\.tgz"):
        read_files(tmp_path / "x.tgz", "package")


def test_a_wrong_root_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"no files below 'pack'.*recipe\.root"):
        collect(tarball(FILES), "pack")
