"""A store that several machines write to at the same moment."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from testbed.base.errors import StorageError
from testbed.kernel.run.interface import RawResult
from testbed.model import Record, Trial
from testbed.results.store import TrialStore
from tests.fake_kernel import conclude, observe


class Contested(LocalFileSystem):  # type: ignore[misc]
    """Another makes ``others`` of the folders just before we do, and all that is said is that."""

    others = 0
    cachable = False

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if self.others:
            self.others -= 1
            raise OSError(errno.EIO, "Failure")
        super().makedirs(path, exist_ok=exist_ok)


@pytest.fixture
def record(tmp_path: Path, trials: tuple[Trial, ...]) -> Record:
    (tmp_path / "trial").mkdir()
    file = tmp_path / "trial" / "observation.json"
    file.write_text(json.dumps(observe(trials[0])))
    raw = RawResult("ended", "", "", None, file)
    return conclude(trials[0], raw, tmp_path / "trial", "0123456789abcdef", 3)


@pytest.mark.parametrize(("others", "is_kept"), [(0, True), (2, True), (10_000, False)])
def test_a_folder_that_another_makes_first(
    tmp_path: Path, record: Record, others: int, is_kept: bool
) -> None:
    files = Contested()
    files.others = others
    store = TrialStore("ssh://host/store", files, str(tmp_path / "store"))
    if not is_kept:
        with pytest.raises(StorageError, match="cannot write the store ssh://host/store"):
            store.write(record, tmp_path / "trial")
        return
    store.write(record, tmp_path / "trial")
    assert store.list_trials(record.environment) == {record.trial_id}
