"""What a package installs is read without dpkg; what is none, or is damaged, is said."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.base.errors import StorageError
from testbed.root.package import open_content
from tests.root.debs import pack

FILES = {"usr/bin": None, "usr/bin/one": b"\x7fELF" * 9, "usr/lib/two": Path("one")}


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress])
def test_members_are_read_in_order(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "one.deb"
    file.write_bytes(pack(FILES, compress))
    with open_content(file) as archive:
        names = [member.name for member in archive]
    assert names == [f"./{name}" for name in FILES]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(lambda data: b"PK" + data, "no package of Debian"),
     (lambda data: b"", "no package of Debian"), (lambda data: data[:90], "has no data.tar"),
     (lambda data: data[:-40], "damaged package"),
     (lambda data: data.replace(b"data.tar.xz", b"data.tar.zs"), "compressed as .zs"),
     (lambda data: data[:-60] + b"\0" * 60, "damaged package")],
)  # fmt: skip
def test_a_damaged_one_is_said(tmp_path: Path, spoil: Callable[[bytes], bytes], words: str) -> None:
    file = tmp_path / "one.deb"
    file.write_bytes(spoil(pack(FILES)))
    with pytest.raises(StorageError, match=words), open_content(file) as archive:
        for member in archive:
            assert member.name
