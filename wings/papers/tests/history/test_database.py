"""The history's file: ours, of a known schema, and brought up to date."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError, StorageError
from wings.papers.history import database
from wings.papers.history.database import STEPS, Step, changing, open_history


def test_it_is_made_when_something_is_added(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.sqlite"
    with pytest.raises(ConfigurationError, match="history add"), open_history(path):
        pass
    with open_history(path, create=True) as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone()[0] == 0
    with open_history(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(STEPS)


def test_another_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE precious (thing)")
    with pytest.raises(ConfigurationError, match="something else"), open_history(path, create=True):
        pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 0


def test_a_newer_one_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with open_history(path, create=True) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigurationError, match="history schema 99"), open_history(path):
        pass


def test_an_older_one_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.sqlite"
    with open_history(path, create=True) as connection:
        connection.execute("INSERT INTO environment VALUES ('one', '{}')")
    later = Step("notes", ("ALTER TABLE environment ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",))
    monkeypatch.setattr(database, "STEPS", (*STEPS, later))
    for _ in range(2):
        with open_history(path) as connection:
            row = connection.execute("SELECT id, note FROM environment").fetchone()
            assert tuple(row) == ("one", "none")


def test_a_step_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.sqlite"
    with open_history(path, create=True):
        pass
    wrong = Step("wrong", ("CREATE TABLE half (made)", "CREATE TABLE half (made)"))
    monkeypatch.setattr(database, "STEPS", (*STEPS, wrong))
    with pytest.raises(StorageError, match="half"), open_history(path):
        pass
    monkeypatch.undo()
    with open_history(path) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    assert "half" not in tables


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    path.write_text("not a database, whatever its name says" * 40)
    with pytest.raises(StorageError, match="not a database"), open_history(path):
        pass


def test_changes_are_all_or_none(tmp_path: Path) -> None:
    with open_history(tmp_path / "history.sqlite", create=True) as connection:
        with pytest.raises(KeyError), changing(connection):
            connection.execute("INSERT INTO environment VALUES ('one', '{}')")
            raise KeyError
        assert connection.execute("SELECT count(*) FROM environment").fetchone()[0] == 0
