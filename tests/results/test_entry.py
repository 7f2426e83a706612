from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from testbed.base.errors import StorageError
from testbed.kernel.run.interface import RawResult
from testbed.model import Cost, Record, Trial, canonical
from testbed.results.entry import DamagedEntryError, pack_entry, unpack_entry
from testbed.results.records import as_read
from tests.fake_kernel import conclude, observe

ENVIRONMENT = "0123456789abcdef"
PACKETS = bytes(range(256)) * 40


@pytest.fixture
def kept(tmp_path: Path, trials: tuple[Trial, ...]) -> tuple[Record, Path]:
    folder = tmp_path / "trial"
    folder.mkdir()
    observation = folder / "observation.json"
    observation.write_text(json.dumps(observe(trials[0])))
    (folder / "client.pcap").write_bytes(PACKETS)
    record = conclude(
        trials[0], RawResult("ended", "", "", None, observation), folder, ENVIRONMENT, 3
    )
    artefacts = {"client.pcap": hashlib.sha256(PACKETS).hexdigest()}
    return as_read(replace(record, artefacts=artefacts)), folder


def test_what_was_packed_comes_back(kept: tuple[Record, Path]) -> None:
    record, folder = kept
    entry = unpack_entry(pack_entry(record, folder), record.trial_id, ENVIRONMENT)
    assert entry.record == replace(record, attempt=1)
    assert dict(entry.files) == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_equal_trials_have_equal_entries(kept: tuple[Record, Path]) -> None:
    record, folder = kept
    again = replace(record, attempt=1, cost=Cost(1.0, 2.0, 3.0))
    before = pack_entry(record, folder)
    (folder / "client.pcap").touch()
    assert pack_entry(again, folder) == before


@pytest.mark.parametrize("which", range(40))
def test_a_flipped_or_lost_byte_anywhere_is_found(kept: tuple[Record, Path], which: int) -> None:
    record, folder = kept
    data = pack_entry(record, folder)
    place = len(data) * which // 40
    flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    for damaged in (flipped, data[:place], data + b"x"):
        with pytest.raises(DamagedEntryError):
            unpack_entry(damaged, record.trial_id, ENVIRONMENT)


def test_an_entry_of_another_trial_or_environment_is_none(kept: tuple[Record, Path]) -> None:
    record, folder = kept
    data = pack_entry(record, folder)
    with pytest.raises(DamagedEntryError, match="its trial_id is"):
        unpack_entry(data, "f" * 16, ENVIRONMENT)
    with pytest.raises(DamagedEntryError, match="its environment is"):
        unpack_entry(data, record.trial_id, "f" * 16)


def forged(record: Record, members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """An entry with a right digest, as who means harm would write it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    content = zstandard.compress(archive.getvalue())
    header = {"format": 1, "trial_id": record.trial_id, "environment": ENVIRONMENT,
              "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip
    return canonical(header).encode() + b"\n" + content


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/b", ".."])
def test_no_file_comes_out_beside_the_folder(kept: tuple[Record, Path], name: str) -> None:
    data = forged(kept[0], [(tarfile.TarInfo(name), b"x")])
    with pytest.raises(DamagedEntryError, match="no plain file"):
        unpack_entry(data, kept[0].trial_id, ENVIRONMENT)


def test_a_link_is_no_file(kept: tuple[Record, Path]) -> None:
    link = tarfile.TarInfo("client.pcap")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with pytest.raises(DamagedEntryError, match="no plain file"):
        unpack_entry(forged(kept[0], [(link, b"")]), kept[0].trial_id, ENVIRONMENT)


def test_a_record_of_another_trial_or_capture_is_found(
    kept: tuple[Record, Path], trials: tuple[Trial, ...]
) -> None:
    from testbed.results.records import write_record

    record, _ = kept
    other = replace(record, trial=trials[1], trial_id=trials[1].id)
    for wrong, files, complaint in (
        (other, {"client.pcap": PACKETS}, "its record is of trial"),
        (record, {"client.pcap": PACKETS[1:]}, "client.pcap is not the file of its record"),
        (record, {}, "client.pcap is not the file of its record"),
    ):
        members = [(tarfile.TarInfo("record.json"), write_record(wrong))]
        members += [(tarfile.TarInfo(name), content) for name, content in files.items()]
        with pytest.raises(DamagedEntryError, match=complaint):
            unpack_entry(forged(record, members), record.trial_id, ENVIRONMENT)
    with pytest.raises(DamagedEntryError, match="its record cannot be read"):
        unpack_entry(forged(record, []), record.trial_id, ENVIRONMENT)


def test_what_unpacks_to_too_much_is_none(
    kept: tuple[Record, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.results.entry.MOST_BYTES", 4096)
    data = forged(kept[0], [(tarfile.TarInfo("zeros"), bytes(100_000))])
    with pytest.raises(DamagedEntryError, match="more than 4096 bytes"):
        unpack_entry(data, kept[0].trial_id, ENVIRONMENT)


def test_files_that_cannot_be_written_or_read_are_told(kept: tuple[Record, Path]) -> None:
    record, folder = kept
    entry = unpack_entry(pack_entry(record, folder), record.trial_id, ENVIRONMENT)
    with pytest.raises(StorageError, match="free space"):
        entry.write_files(folder / "nowhere")
    with pytest.raises(StorageError, match="cannot read"):
        pack_entry(record, folder / "nowhere")
