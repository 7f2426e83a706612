"""Files that a user names: what is no plain file is neither read nor replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.base.plain_file import open_plain
from testbed.base.whole_file import refuse_existing


@pytest.fixture(params=["folder", "pipe"])
def odd(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Something that is no plain file."""
    path = tmp_path / "odd"
    if request.param == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    return path


def test_what_is_no_plain_file_is_not_read(odd: Path) -> None:
    with pytest.raises(ConfigurationError, match="is no plain file"):
        open_plain(odd)


def test_a_plain_file_is_read_also_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("file")
    with open_plain(tmp_path / "link") as stream:
        assert stream.read() == b"mine"


def test_a_file_that_is_missing_is_said(tmp_path: Path) -> None:
    for name in ("missing", "x" * 300):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            open_plain(tmp_path / name)


@pytest.mark.parametrize("replace", [False, True])
def test_what_is_no_plain_file_is_not_replaced(odd: Path, replace: bool) -> None:
    link = odd.with_name("link")
    for target in (odd.name, "nowhere"):
        link.symlink_to(target)
        for path in (odd, link):
            with pytest.raises(ConfigurationError) as caught:
                refuse_existing(path, replace=replace)
            said = f"{path} is there and is no plain file; choose another name"
            assert caught.value.problems == [said]
        link.unlink()


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("x" * 300, "file/x"):
        with pytest.raises(ConfigurationError, match="; choose another name"):
            refuse_existing(tmp_path / name, replace=True)


def test_a_plain_file_is_replaced_if_that_is_said(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "file", replace=False)
    (tmp_path / "file").touch()
    refuse_existing(tmp_path / "file", replace=True)
    with pytest.raises(ConfigurationError, match="or give --replace"):
        refuse_existing(tmp_path / "file", replace=False)
