"""Kernel packs: the same build gives the same bytes, and a reader takes no others."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base import places, proc
from testbed.base.errors import ConfigurationError
from testbed.kernel.build import pack as packing
from testbed.kernel.build.cache import identify
from testbed.kernel.build.pack import KernelPack, PackedFile, oldest_glibc, read_pack, render_pack
from testbed.kernel.build.pin import read_pin
from tests.kernel.packed import LINUX, PROGRAMS, SOURCES_KEY

Members = list[tuple[tarfile.TarInfo, bytes]]


def make_pack() -> KernelPack:
    files = {f"programs/{name}": PackedFile(0o755, data) for name, data in PROGRAMS.items()}
    files["programs/.contents/sha256"] = PackedFile(0o644, b"")
    return KernelPack(
        identity=identify(read_pin("7.3"), "gcc 12", hashlib.sha256(LINUX).hexdigest()),
        machine="x86_64",
        glibc="2.17",
        programs=SOURCES_KEY,
        sources={"testbed/native/init.c": "0" * 64},
        files=files | {"linux": PackedFile(0o755, LINUX)},
    )


PACKED = render_pack(make_pack())


def test_the_programs_of_this_tree_may_be_in_a_pack(tmp_path: Path) -> None:
    names = [path.stem for path in (places.ROOT / "testbed" / "native").glob("*.c")]
    assert "event-server" in names
    packed = make_pack()
    files = {f"programs/{name}": PackedFile(0o755, b"") for name in names}
    file = tmp_path / "pack"
    file.write_bytes(render_pack(replace(packed, files={**packed.files, **files})))
    assert {f"programs/{name}" for name in names} <= set(read_pack(file).files)


def read_bytes(folder: Path, packed: bytes) -> KernelPack:
    file = folder / "pack"
    file.write_bytes(packed)
    return read_pack(file)


def refusal(folder: Path, packed: bytes) -> str:
    """Return why it is refused: one problem, which names the file and the remedy."""
    with pytest.raises(ConfigurationError) as caught:
        read_bytes(folder, packed)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{folder / 'pack'}: ")
    assert problem.endswith("; nothing was imported; get or export it again")
    return problem


def unpack() -> Members:
    with tarfile.open(fileobj=io.BytesIO(PACKED), mode="r:xz") as archive:
        found = []
        for member in archive.getmembers():
            stream = archive.extractfile(member)
            assert stream is not None
            found.append((member, stream.read()))
        return found


def pack_again(members: Members) -> bytes:
    """Return an archive of the members, written by Python's own writer."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for member, data in members:
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


def with_manifest(change: Callable[[dict[str, Any]], object]) -> bytes:
    (member, text), *rest = unpack()
    document = json.loads(text)
    change(document)
    changed = (json.dumps(document, indent=2) + "\n").encode()
    member.size = len(changed)
    return pack_again([(member, changed), *rest])


def test_a_pack_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, PACKED) == make_pack()


def test_equal_packs_are_equal_bytes() -> None:
    pack = make_pack()
    shuffled = replace(pack, files=dict(reversed(list(pack.files.items()))))
    assert render_pack(shuffled) == PACKED


def test_nothing_of_the_machine_is_in_a_pack() -> None:
    members = [member for member, _ in unpack()]
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
    first, *rest = [member.name for member in members]
    assert first == "manifest.json"
    assert rest == sorted(rest)


def test_other_tools_read_a_pack(tmp_path: Path) -> None:
    (tmp_path / "pack").write_bytes(PACKED)
    proc.run(["tar", "-xJf", "pack"], cwd=tmp_path)
    assert (tmp_path / "linux").read_bytes() == LINUX
    assert (tmp_path / "linux").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("packed", [b"", b"MZ", b"\0" * 4096, lzma.compress(b""), LINUX])
def test_what_is_no_pack_is_refused(tmp_path: Path, packed: bytes) -> None:
    assert "cut short" in (said := refusal(tmp_path, packed)) or "no kernel pack" in said


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="absent: cannot be read: No such file"):
        read_pack(tmp_path / "absent")
    with pytest.raises(ConfigurationError, match="is no plain file"):
        read_pack(tmp_path)


@given(st.integers(0, len(PACKED) - 1))
def test_a_pack_that_is_cut_short_is_refused(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    refusal(tmp_path_factory.mktemp("cut"), PACKED[:length])


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255))
def test_a_pack_with_an_altered_byte_is_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, mask: int
) -> None:
    altered = bytearray(PACKED)
    altered[place] ^= mask
    refusal(tmp_path_factory.mktemp("altered"), bytes(altered))


def test_what_goes_on_behind_its_end_is_refused(tmp_path: Path) -> None:
    assert "goes on behind its end" in refusal(tmp_path, PACKED + b"more")


def test_an_altered_file_is_named(tmp_path: Path) -> None:
    members = unpack()
    (index,) = (i for i, (m, _) in enumerate(members) if m.name == "programs/init")
    member, data = members[index]
    members[index] = (member, data[::-1])
    assert "programs/init has another SHA-256 than manifest.json says" in refusal(
        tmp_path, pack_again(members)
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    members = [(m, data) for m, data in unpack() if m.name != "programs/init"]
    said = refusal(tmp_path, pack_again(members))
    assert "holds 'programs/tfo.so' (a file) where programs/init belongs" in said


def a_link(member: tarfile.TarInfo) -> None:
    member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0


def a_hard_link(member: tarfile.TarInfo) -> None:
    member.type, member.linkname, member.size = tarfile.LNKTYPE, "linux", 0


def a_device(member: tarfile.TarInfo) -> None:
    member.type, member.devmajor, member.size = tarfile.CHRTYPE, 1, 0


def a_path_out(member: tarfile.TarInfo) -> None:
    member.name = "../../../.bashrc"


def an_absolute_path(member: tarfile.TarInfo) -> None:
    member.name = "/etc/profile.d/x.sh"


def another_owner(member: tarfile.TarInfo) -> None:
    member.uid = 1000


def set_user_id(member: tarfile.TarInfo) -> None:
    member.mode = 0o4755


@pytest.mark.parametrize(
    "disguise",
    [a_link, a_hard_link, a_device, a_path_out, an_absolute_path, another_owner, set_user_id],
)
@pytest.mark.parametrize("name", ["linux", "programs/init"])
def test_what_is_not_the_file_that_belongs_there_is_refused(
    tmp_path: Path, name: str, disguise: Callable[[tarfile.TarInfo], None]
) -> None:
    members = unpack()
    for member, _ in members:
        if member.name == name:
            disguise(member)
    assert f" where {name} belongs" in refusal(tmp_path, pack_again(members))


@pytest.mark.parametrize("disguise", [a_link, a_path_out, a_device])
def test_what_no_manifest_names_is_refused(
    tmp_path: Path, disguise: Callable[[tarfile.TarInfo], None]
) -> None:
    further = tarfile.TarInfo("zzz")
    disguise(further)
    said = refusal(tmp_path, pack_again([*unpack(), (further, b"")]))
    assert "which manifest.json does not name" in said


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "programs/../../x", "programs//x", "programs/.contents/../x",
             "other", "programs/a b", "programs/\x1b[2J", "linux\n"],
)  # fmt: skip
def test_a_manifest_may_name_programs_and_nothing_else(tmp_path: Path, name: str) -> None:
    entry = {"bytes": 0, "mode": "644", "sha256": "0" * 64}
    assert "manifest.json" in refusal(
        tmp_path, with_manifest(lambda document: document["files"].update({name: entry}))
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(format=2), "is of format 2, and this version reads format 1"),
        (lambda m: m.update(more=1), "manifest.json: more: "),
        (lambda m: m.pop("kernel"), "manifest.json: kernel: "),
        (lambda m: m.update(programs="../../x"), "manifest.json: programs: "),
        (lambda m: m.update(glibc="new"), "manifest.json: glibc: "),
        (lambda m: m["files"]["linux"].update(mode="4755"), "manifest.json: files.linux.mode: "),
        (lambda m: m["files"]["linux"].update(bytes=-1), "manifest.json: files.linux.bytes: "),
        (lambda m: m["files"]["linux"].update(bytes=1 << 40), "manifest.json: files.linux.bytes"),
        (lambda m: m["kernel"].update(compiler="\x1b[2J"), "has characters that no kernel's has"),
        (lambda m: m.update(glibc=m.pop("glibc")), "is not as ./run.sh kernel export writes it"),
        (lambda m: m["kernel"].update(binary_sha256="0" * 64), "or another than the build"),
        (lambda m: m["files"].pop("linux"), "holds 'linux' (a file) where programs/"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    assert said in refusal(tmp_path, with_manifest(change))


def test_a_pack_larger_than_any_of_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_BYTES", 1 << 20)
    assert "too large" in refusal(tmp_path, lzma.compress(bytes(2 << 20)))


def test_the_oldest_c_library_is_the_newest_that_a_file_asks_for() -> None:
    assert oldest_glibc(make_pack().files) == "2.17"
    assert oldest_glibc({}) == "2.0"
