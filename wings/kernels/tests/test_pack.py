"""Kernel packs: the same build gives the same bytes, and a reader takes no others."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base import places, proc
from testbed.base.errors import ConfigurationError
from testbed.kernel.build.cache import identify
from testbed.kernel.build.pin import read_pin
from tests.kernel.packed import LINUX, PROGRAMS, SOURCES_KEY
from wings.kernels.pack import KernelPack, PackedFile, read_pack, render_pack

Members = list[tuple[zipfile.ZipInfo, bytes]]


def make_pack() -> KernelPack:
    files = {f"programs/{name}": PackedFile(0o755, data) for name, data in PROGRAMS.items()}
    files["programs/SHA256SUMS"] = PackedFile(0o644, b"")
    return KernelPack(
        identity=identify(read_pin("7.3"), "gcc 12", hashlib.sha256(LINUX).hexdigest()),
        machine="x86_64",
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
    """Return why it is refused: problems that name the file, and the remedy."""
    with pytest.raises(ConfigurationError) as caught:
        read_bytes(folder, packed)
    *problems, remedy = caught.value.problems
    assert problems
    assert all(problem.startswith(f"{folder / 'pack'}: ") for problem in problems)
    assert remedy == f"{folder / 'pack'}: nothing was imported; get or export it again"
    return "\n".join(problems)


def unpack() -> Members:
    with zipfile.ZipFile(io.BytesIO(PACKED)) as archive:
        return [(member, archive.read(member)) for member in archive.infolist()]


def pack_again(members: Members) -> bytes:
    """Return an archive of the members, written by Python's own writer."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for member, data in members:
            archive.writestr(member, data)
    return made.getvalue()


def with_manifest(change: Callable[[dict[str, Any]], object]) -> bytes:
    (member, text), *rest = unpack()
    document = json.loads(text)
    change(document)
    changed = (json.dumps(document, indent=2) + "\n").encode()
    return pack_again([(member, changed), *rest])


def test_a_pack_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, PACKED) == make_pack()


def test_equal_packs_are_equal_bytes() -> None:
    pack = make_pack()
    shuffled = replace(pack, files=dict(reversed(list(pack.files.items()))))
    assert render_pack(shuffled) == PACKED


def test_nothing_of_the_machine_is_in_a_pack() -> None:
    members = [member for member, _ in unpack()]
    assert {(m.date_time, m.extra, m.comment) for m in members} == {
        ((1980, 1, 1, 0, 0, 0), b"", b"")
    }
    first, *rest = [member.filename for member in members]
    assert first == "manifest.json"
    assert rest == sorted(rest)


def test_other_tools_read_a_pack(tmp_path: Path) -> None:
    (tmp_path / "pack").write_bytes(PACKED)
    proc.run(["unzip", "-q", "pack"], cwd=tmp_path)
    assert (tmp_path / "linux").read_bytes() == LINUX
    assert (tmp_path / "linux").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("packed", [b"", b"MZ", b"\0" * 4096, LINUX, pack_again([])])
def test_what_is_no_pack_is_refused(tmp_path: Path, packed: bytes) -> None:
    assert "no kernel pack" in refusal(tmp_path, packed)


def test_a_pack_of_the_first_format_is_to_be_exported_again(tmp_path: Path) -> None:
    assert refusal(tmp_path, lzma.compress(b"a tar archive")).endswith(
        "is of format 1, and this version reads 3: export it again in a tree of this version"
    )


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
def test_an_altered_byte_changes_nothing_of_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, place: int, mask: int
) -> None:
    """A pack is refused, or the byte is one that holds nothing, such as a time."""
    altered = bytearray(PACKED)
    altered[place] ^= mask
    try:
        read = read_bytes(tmp_path_factory.mktemp("altered"), bytes(altered))
    except ConfigurationError as error:
        assert "nothing was imported" in error.problems[-1]
    else:
        assert read == make_pack()


def test_an_altered_kernel_is_refused(tmp_path: Path) -> None:
    (place,) = (m.header_offset for m, _ in unpack() if m.filename == "linux")
    altered = bytearray(PACKED)
    altered[place + 30 + len("linux") + 9] ^= 1
    assert "linux" in refusal(tmp_path, bytes(altered))


def test_what_goes_on_behind_its_end_is_refused(tmp_path: Path) -> None:
    assert "does not end as" in refusal(tmp_path, PACKED + b"more")


def test_an_altered_file_is_named(tmp_path: Path) -> None:
    members = [(m, data[::-1] if m.filename == "programs/init" else data) for m, data in unpack()]
    assert "programs/init has another SHA-256 than manifest.json says" in refusal(
        tmp_path, pack_again(members)
    )


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    members = [(m, data) for m, data in unpack() if not m.filename.startswith("programs/t")]
    said = refusal(tmp_path, pack_again([each for each in members if each[0].filename != "linux"]))
    assert "lacks 'linux', which manifest.json lists" in said
    assert "lacks 'programs/tfo.so', which manifest.json lists" in said


def of_mode(mode: int) -> Callable[[zipfile.ZipInfo], None]:
    def disguise(member: zipfile.ZipInfo) -> None:
        member.external_attr = mode << 16

    return disguise


def named(name: str) -> Callable[[zipfile.ZipInfo], None]:
    def disguise(member: zipfile.ZipInfo) -> None:
        member.filename = name

    return disguise


DISGUISES = {
    "is a link": of_mode(stat.S_IFLNK | 0o777),
    "is a device": of_mode(stat.S_IFCHR | 0o755),
    "is a folder": of_mode(stat.S_IFDIR | 0o755),
    "is of mode 104755": of_mode(stat.S_IFREG | 0o4755),
    "'../../../.bashrc' leads out": named("../../../.bashrc"),
    "'/etc/profile.d/x.sh' leads out": named("/etc/profile.d/x.sh"),
}


@pytest.mark.parametrize("said", [*DISGUISES, "is of mode 777; manifest.json says 755"])
@pytest.mark.parametrize("name", ["linux", "programs/init"])
def test_what_is_not_the_file_that_belongs_there_is_refused(
    tmp_path: Path, name: str, said: str
) -> None:
    members = unpack()
    for member, _ in members:
        if member.filename == name:
            DISGUISES.get(said, of_mode(stat.S_IFREG | 0o777))(member)
    assert said in refusal(tmp_path, pack_again(members))


@pytest.mark.parametrize("said", [*DISGUISES, "holds zzz, which manifest.json does not list"])
def test_what_no_manifest_names_is_refused(tmp_path: Path, said: str) -> None:
    further = zipfile.ZipInfo("zzz")
    DISGUISES.get(said, of_mode(stat.S_IFREG | 0o644))(further)
    assert said in refusal(tmp_path, pack_again([*unpack(), (further, b"")]))


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "programs/../../x", "programs//x", "programs/.SHA256SUMS",
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
        (lambda m: m.update(format=4), "is of format 4, and this version reads format 3"),
        (lambda m: m.update(more=1), "manifest.json: more: "),
        (lambda m: m.pop("kernel"), "manifest.json: kernel: "),
        (lambda m: m.update(programs="../../x"), "manifest.json: programs: "),
        (lambda m: m["files"]["linux"].update(mode="4755"), "manifest.json: files.linux.mode: "),
        (lambda m: m["files"]["linux"].update(bytes=-1), "manifest.json: files.linux.bytes: "),
        (lambda m: m["files"]["linux"].update(bytes=1 << 40), "; manifest.json says 1099511627776"),
        (lambda m: m["kernel"].update(compiler="\x1b[2J"), "has characters that no kernel's has"),
        (
            lambda m: m.update(machine=m.pop("machine")),
            "is not as ./run.sh kernel export writes it",
        ),
        (lambda m: m["kernel"].update(binary_sha256="0" * 64), "or another than the build"),
        (lambda m: m["files"].pop("linux"), "holds linux, which manifest.json does not list"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    assert said in refusal(tmp_path, with_manifest(change))


def test_a_pack_larger_than_any_of_ours_is_refused(tmp_path: Path) -> None:
    (linux, _) = next(each for each in unpack() if each[0].filename == "linux")
    linux.filename = "more"
    linux.compress_type = zipfile.ZIP_DEFLATED
    large = pack_again([*unpack(), (linux, bytes(140 << 20))])
    assert "it would unpack to more than 128.0 MiB" in refusal(tmp_path, large)
