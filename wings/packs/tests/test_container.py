"""What is no pack is refused before anything of it is written, with every problem."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError, StorageError
from wings.packs.container import (
    ListedFile,
    PackFile,
    PackFormat,
    describe_wrong_name,
    list_collisions,
    open_container,
    write_container,
)

PLAIN = stat.S_IFREG | 0o644
LIST = "list.json"
FORM = PackFormat("pack of these tests", LIST, "nothing was unpacked; make it again", 9, 1 << 30, 9)


def make_zip(
    file: Path, *entries: tuple[str, bytes], mode: int = PLAIN, system: int = 3,
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:  # fmt: skip
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.create_system = mode << 16, system
            info.compress_type = compression
            archive.writestr(info, data)
    return file


def refusal(file: Path, form: PackFormat = FORM) -> str:
    with pytest.raises(ConfigurationError) as caught, open_container(file, form):
        pass
    return "\n".join(caught.value.problems)


def packed(folder: Path, name: str, data: bytes) -> PackFile:
    path = folder / hashlib.sha256(name.encode()).hexdigest()
    path.write_bytes(data)
    return PackFile(name, path, len(data), hashlib.sha256(data).hexdigest())


def test_what_was_written_is_read(tmp_path: Path) -> None:
    files = [packed(tmp_path, "b/c d.txt", b"two"), packed(tmp_path, "a", b"one" * 9_999_999)]
    with (tmp_path / "pack").open("wb") as stream:
        write_container(stream, FORM, b"{}", files)
    with open_container(tmp_path / "pack", FORM) as found:
        listed = {each.name: ListedFile(each.size, each.sha256) for each in files}
        assert list(found.list_differences(listed)) == []
        assert found.read_list() == b"{}"
        for file in files:
            found.extract(file.name, tmp_path / "out" / file.name, file.sha256)
            assert (tmp_path / "out" / file.name).read_bytes() == file.source.read_bytes()
    with zipfile.ZipFile(tmp_path / "pack") as archive:
        assert archive.namelist() == [LIST, "a", "b/c d.txt"]


def test_a_list_is_compared_with_names_and_sizes(tmp_path: Path) -> None:
    data = [packed(tmp_path, name, name.encode()) for name in "abc"]
    with (tmp_path / "pack").open("wb") as stream:
        write_container(stream, FORM, b"", data)
    listed = {"a": ListedFile(1, "0" * 64), "b": ListedFile(2, "0" * 64)}
    listed |= {"d": ListedFile(0, "0" * 64), LIST: ListedFile(0, "0" * 64)}
    with open_container(tmp_path / "pack", FORM) as found:
        assert list(found.list_differences(listed)) == [
            "b has 1 bytes; list.json says 2", "holds c, which list.json does not list",
            "lacks 'd', which list.json lists", "list.json lists itself",
        ]  # fmt: skip


def test_equal_files_make_equal_packs(tmp_path: Path) -> None:
    def write(*names: str) -> bytes:
        files = [packed(tmp_path, name, name.encode()) for name in names]
        stream = io.BytesIO()
        write_container(stream, FORM, b"{}", files)
        return stream.getvalue()

    assert write("a", "b", "c") == write("c", "a", "b")


def test_a_file_that_changes_meanwhile_is_no_pack(tmp_path: Path) -> None:
    file = packed(tmp_path, "a", b"one")
    file.source.write_bytes(b"two")
    with pytest.raises(StorageError, match="changed while it was packed"):
        write_container(io.BytesIO(), FORM, b"{}", [file])


@pytest.mark.parametrize(
    "name",
    ["../x", "/x", "a/../../x", "a//b", "./a", "a/", "a\\b", "a\x1b[2J", "", "a/" * 9 + "b",
     "x" * 256, "\u202egnp.exe"],
)  # fmt: skip
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    assert describe_wrong_name(name)
    said = refusal(make_zip(tmp_path / "pack", (name, b"")))
    assert "nothing was unpacked" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("name", ["a", "a/b.c", ".a", "a b", "trials/0f/client.pcap", "x" * 255])
def test_names_that_stay(name: str) -> None:
    assert describe_wrong_name(name) == ""


def test_a_name_behind_a_nul_is_seen(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", ("harmless_x", b""))
    file.write_bytes(file.read_bytes().replace(b"harmless_x", b"harmless\0x"))
    assert "characters other than printable" in refusal(file)


@pytest.mark.parametrize(
    ("kind", "word"),
    [(stat.S_IFLNK | 0o777, "a link"), (stat.S_IFDIR | 0o755, "a folder"),
     (stat.S_IFCHR | 0o644, "a device"), (stat.S_IFBLK | 0o644, "a device"),
     (stat.S_IFIFO | 0o644, "no file"), (stat.S_IFREG | 0o4755, "of mode 104755"),
     (stat.S_IFREG | 0o755, "of mode 100755"), (0, "no file")],
)  # fmt: skip
def test_nothing_but_plain_files(tmp_path: Path, kind: int, word: str) -> None:
    assert f"x is {word}" in refusal(make_zip(tmp_path / "pack", ("x", b"/etc"), mode=kind)) or (
        word in refusal(tmp_path / "pack")
    )


def test_other_systems_and_compressions(tmp_path: Path) -> None:
    assert "of another system" in refusal(make_zip(tmp_path / "dos", ("x", b""), system=0))
    odd = make_zip(tmp_path / "odd", ("x", b""), compression=zipfile.ZIP_BZIP2)
    assert "compressed in another way" in refusal(odd)


def test_an_encrypted_file(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", ("x", b""))
    data = bytearray(file.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(data)
    assert "is encrypted" in refusal(file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", ("../x", b""), ("a", b""), ("a", b""), ("a/b", b""))
    said = refusal(file)
    assert "'../x' leads out" in said
    assert "'a' is there twice" in said
    assert said.count("\n") == 3


def test_collisions() -> None:
    assert list(list_collisions(["a/b", "a"])) == ["a"]
    assert list(list_collisions(["a", "a/b"])) == ["a"]
    assert list(list_collisions(["a/b", "a/c", "d"])) == []


def test_more_than_fits(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", *((f"{number}", b"x" * 9) for number in range(4)))
    assert "more than 2 files" in refusal(file, replace(FORM, max_files=2))
    assert "unpack to more than 35 B" in refusal(
        file, replace(FORM, max_bytes=35, max_list_bytes=0)
    )
    long = make_zip(tmp_path / "long", (LIST, b"0123456789"))
    assert "list.json has more than 9 B" in refusal(long)


def test_a_directory_that_does_not_fit_into_memory(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", ("x", b""))
    data = file.read_bytes()
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 1 << 31, 0, 0)
    file.write_bytes(data[:-22] + end)
    assert "names more than" in refusal(file)


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip" * 99, b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "pack").write_bytes(data)
    if data.startswith(b"PK\x05\x06"):  # an empty one, which is no pack for another reason
        with open_container(tmp_path / "pack", FORM) as found:
            assert list(found.list_differences({})) == []
            assert found.read_list() == b""
        return
    assert "no pack of these tests, or damaged" in refusal(tmp_path / "pack")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "missing")
    assert "is no plain file" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is no plain file" in refusal(tmp_path / "pipe")
    assert "is no plain file" in refusal(Path("/dev/zero"))


def test_a_file_that_is_longer_than_it_says(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", ("x", b"y" * 5_000_000))
    data = file.read_bytes()
    file.write_bytes(data.replace(struct.pack("<L", 5_000_000), struct.pack("<L", 50)))
    with open_container(file, FORM) as found, pytest.raises(ValueError, match="x: damaged"):
        found.extract("x", tmp_path / "out", "0" * 64)
    assert (tmp_path / "out").stat().st_size <= 50


def test_a_damaged_file(tmp_path: Path) -> None:
    file = make_zip(tmp_path / "pack", ("x", bytes(range(256)) * 99))
    data = bytearray(file.read_bytes())
    data[60] ^= 0xFF
    file.write_bytes(data)
    with open_container(file, FORM) as found, pytest.raises(ValueError, match="x"):
        found.extract("x", tmp_path / "out", "0" * 64)


def damaged_directories(data: bytes) -> list[bytes]:
    """Return the archive with every field of its directory, and every length of it, made wrong."""
    start = data.index(b"PK\x01\x02")
    values = (b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", struct.pack("<I", len(data)))
    return [
        *(data[:at] + value + data[at + 4 :] for at in range(start, len(data) - 3)
          for value in values),
        *(data[:length] for length in range(0, len(data), 11)),
        data[: data.rindex(b"PK\x05\x06")] + data[start:],
    ]  # fmt: skip


def test_a_damaged_archive_is_refused_or_its_files_are(tmp_path: Path) -> None:
    files = [packed(tmp_path, "a", b"one" * 300), packed(tmp_path, "b/c", b"")]
    with (tmp_path / "pack").open("wb") as stream:
        write_container(stream, FORM, b"{}", files)
    ends = set()
    for data in damaged_directories((tmp_path / "pack").read_bytes()):
        (tmp_path / "damaged").write_bytes(data)
        try:
            with open_container(tmp_path / "damaged", FORM) as found:
                listed = {each.name: ListedFile(each.size, each.sha256) for each in files}
                if list(found.list_differences(listed)):
                    ends.add("other files")
                    continue
                found.read_list()
                for each in files:
                    (tmp_path / "out").unlink(missing_ok=True)
                    found.extract(each.name, tmp_path / "out", each.sha256)
            ends.add("whole")
        except ConfigurationError:
            ends.add("refused")
        except ValueError as error:
            ends.add("damaged" if "damaged" in str(error) or "SHA-256" in str(error) else "?")
    assert ends <= {"refused", "damaged", "other files", "whole"}
    assert "refused" in ends


def test_files_over_each_other_are_refused(tmp_path: Path) -> None:
    data = bytearray(make_zip(tmp_path / "x", ("a", b"1" * 99), ("b", b"2" * 99)).read_bytes())
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<I", 0)
    (tmp_path / "x").write_bytes(data)
    assert "over another file" in refusal(tmp_path / "x")
