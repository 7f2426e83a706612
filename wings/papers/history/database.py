"""The history's file: one SQLite database, its schema versioned, brought up to date when opened.

``PRAGMA application_id`` says that a file is ours, ``PRAGMA user_version`` how many of STEPS it
has (SQLite file format, section 1.3).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import ConfigurationError, StorageError

APPLICATION_ID = 0x66666869
BUSY_S = 30.0
"""Two runs may end at once; a write takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the schema: what it brings, and its statements."""

    name: str
    statements: tuple[str, ...]


STEPS = (
    Step(
        "runs, cells and environments",
        (
            """CREATE TABLE environment (
                 id TEXT PRIMARY KEY,
                 parts TEXT NOT NULL
               ) STRICT""",
            """CREATE TABLE run (
                 id INTEGER PRIMARY KEY,
                 identity TEXT NOT NULL UNIQUE,
                 content TEXT NOT NULL,
                 created_utc TEXT NOT NULL,
                 experiment TEXT NOT NULL,
                 title TEXT NOT NULL,
                 git_revision TEXT NOT NULL,
                 environment TEXT NOT NULL REFERENCES environment,
                 kernel TEXT NOT NULL,
                 kernel_version TEXT NOT NULL,
                 baseline TEXT,
                 verdict TEXT
               ) STRICT""",
            """CREATE TABLE cell (
                 run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
                 name TEXT NOT NULL,
                 axes TEXT NOT NULL,
                 place INTEGER NOT NULL,
                 n INTEGER NOT NULL,
                 median_ms REAL,
                 low_ms REAL,
                 high_ms REAL,
                 outcomes TEXT NOT NULL,
                 verdict TEXT,
                 later_pct REAL,
                 PRIMARY KEY (run, name)
               ) STRICT, WITHOUT ROWID""",
        ),
    ),
    Step(
        "what a visitor sees",
        (
            """CREATE TABLE milestone (
                 run INTEGER NOT NULL,
                 name TEXT NOT NULL,
                 metric TEXT NOT NULL,
                 n INTEGER NOT NULL,
                 median REAL NOT NULL,
                 low REAL NOT NULL,
                 high REAL NOT NULL,
                 PRIMARY KEY (run, name, metric),
                 FOREIGN KEY (run, name) REFERENCES cell ON DELETE CASCADE
               ) STRICT, WITHOUT ROWID""",
        ),
    ),
)


@contextmanager
def open_history(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the history in ``path`` with the present schema; change it within ``changing``.

    Raises:
        ConfigurationError: there is none and none is to be made, it is no history, or one of a
            newer testbed.
        StorageError: it cannot be read or written, also within the block.
    """
    if not create and not path.is_file():
        raise ConfigurationError(
            [f"there is no history in {path}; ./run.sh history add DIR makes one from results"]
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            _bring_up_to_date(connection, path)
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise StorageError(
            f"cannot use the history {path}: {error}; results are not touched by it: move it away "
            "and add them again with ./run.sh history add DIR"
        ) from error


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the changes of the block together, or none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _bring_up_to_date(connection: sqlite3.Connection, path: Path) -> None:
    if _version_of(connection, path) == len(STEPS):
        return
    with changing(connection):
        # Asked again: another process may have done it before this one had the file to itself.
        for step in STEPS[_version_of(connection, path) :]:
            for statement in step.statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")


def _version_of(connection: sqlite3.Connection, path: Path) -> int:
    application, version = (int(connection.execute(f"PRAGMA {name}").fetchone()[0])
                            for name in ("application_id", "user_version"))  # fmt: skip
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise ConfigurationError(
            [f"{path} is a database of something else; choose another file with --history"]
        )
    if version > len(STEPS):
        raise ConfigurationError(
            [f"{path} has history schema {version}, this testbed knows {len(STEPS)} "
             f"({STEPS[-1].name}); use a newer revision of it"]
        )  # fmt: skip
    return version
