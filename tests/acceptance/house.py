"""The whole house for a test: the real command line, with pages, results and a cache of its own."""

from __future__ import annotations

import io
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.cli.main import main
from firstflight.cli.services import Services, program_services
from testbed.archive.reading import Archive, read_archive
from testbed.base import places
from testbed.base.errors import EXIT_CONFIGURATION, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.model import HAR_FILE, Record
from testbed.pages.build import build_page
from testbed.results.folder import read_records
from tests.measured import load_of
from wings.pages.tests.recorder.site import Site

Plant = Callable[[str, str, str], None]
"""Changes the code that guests run: in a module, a text by another."""


@dataclass(frozen=True)
class Ran:
    """What one ``run`` came to."""

    code: int
    said: str
    folder: Path
    records: tuple[Record, ...]

    def one(self, **knobs: Any) -> Record:
        """The only record whose condition has these knobs."""
        (record,) = (r for r in self.records if knobs.items() <= knobs_of(r).items())
        return record

    def har(self, record: Record) -> list[dict[str, Any]]:
        path = self.folder / "trials" / record.trial_id / HAR_FILE
        entries: list[dict[str, Any]] = json.loads(path.read_text())["log"]["entries"]
        return entries


@dataclass(frozen=True)
class House:
    """Folders of one test file, and what a user would do in them."""

    folder: Path
    cache: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def pages(self) -> Path:
        return self.folder / "pages"

    def take(self, *names: str) -> None:
        """Take pages of the repository, unless they are here."""
        for name in names:
            if not (self.pages / name).exists():
                shutil.copytree(places.ROOT / "pages" / name, self.pages / name)

    def command(self, *words: str) -> tuple[int, str]:
        """Exit code and standard output of ``firstflight WORDS``."""
        services = program_services()
        said = io.BytesIO()
        with redirect_stdout(io.TextIOWrapper(said, "utf-8")) as text:
            code = main(words, self._at_home(services))
            text.flush()
            return code, said.getvalue().decode("utf-8", "replace")

    def record(self, site: Site, url: str, name: str, *words: str) -> str:
        """``pages record`` of a served site; what it said."""
        rules = [word for rule in site.rules for word in ("--resolver-rule", rule)]
        return self._succeed("pages", "record", url, "--name", name, "--wait", "1", *rules,
                             *words)  # fmt: skip

    def import_page(self, file: Path, name: str, *words: str) -> str:
        """``pages import`` of a file; what it said."""
        return self._succeed("pages", "import", str(file), "--name", name, *words)

    def import_table(self, table: str, name: str, url: str) -> str:
        """A page of this table of resources, called ``name``."""
        file = self.folder / "resources.csv"
        file.write_text(table)
        self.import_page(file, name, "--title", name.title(), "--url", url)
        return name

    def refused(self, text: str, *words: str) -> str:
        """What ``plan`` says of the experiment ``text``, which cannot be."""
        config = self.folder / "wrong.toml"
        config.write_text(text)
        with redirect_stderr(io.StringIO()) as said:
            assert self.command("plan", str(config), *words)[0] == EXIT_CONFIGURATION
        return said.getvalue()

    def run(self, **knobs: Any) -> Ran:
        """``run`` of an experiment with these knobs, lists swept."""
        config = self.folder / "experiment.toml"
        config.write_text('title = "Acceptance"\npage = "none"\nclient = "chromium"\n')
        sets = [
            word for name, value in knobs.items() for word in ("--set", f"{name}={toml(value)}")
        ]
        folder = self.folder / "results" / str(next(self._numbers))
        code, said = self.command("run", str(config), *sets, "-o", str(folder))
        return Ran(code, said, folder, read_records(folder))

    def archive(self, name: str) -> Archive:
        return read_archive(build_page(self.pages / name, self.cache))

    def _succeed(self, *words: str) -> str:
        code, said = self.command(*words)
        assert code == EXIT_OK, said
        return said

    def _at_home(self, services: Services) -> Services:
        return replace(services, results=self.folder / "results")


@contextmanager
def open_house(folder: Path, cache: Path) -> Iterator[House]:
    """A house in ``folder`` for the time of the block; ``cache`` is an XDG_CACHE_HOME."""
    (folder / "pages").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(places, "PAGES", folder / "pages")
        yield House(folder, places.cache())


def knobs_of(record: Record) -> Mapping[str, Any]:
    """The knobs of a record's condition by their names in experiment files."""
    condition = record.trial.linked
    names = ("page", "client", "protocol", "tls_version", "randomness", "allow_misses", "device")
    named = {name: getattr(condition, name) for name in names}
    return named | {"rtt_ms": condition.link.rtt_ms, "tfo": condition.tcp.tfo}


def toml(value: Any) -> str:
    """A text, number, truth value or list of them as TOML, which JSON's way to write them is."""
    return json.dumps(value)


def assert_ok(record: Record) -> None:
    """The trial counts, and its reason is in the message if it does not."""
    assert (record.outcome, record.reason) == ("ok", None), (record.outcome, record.reason)


def assert_refused(ran: Ran, outcome: str, *parts: str) -> None:
    """The only trial prints no number, and its reason has these parts."""
    (record,) = ran.records
    assert (record.outcome, ran.code) == (outcome, EXIT_OUT_OF_TOLERANCE), record.reason
    assert record.reason is not None
    assert [part for part in parts if part not in record.reason] == [], record.reason


def assert_bad(record: Record, says: str, *outcomes: str) -> None:
    """The trial has one of these outcomes, and its reason says so."""
    assert record.outcome in outcomes, (record.outcome, record.reason)
    assert record.reason is not None and says in record.reason, record.reason


def assert_exact(record: Record, archive: Archive) -> None:
    """The trial counts; all that the page holds was asked for, nothing else, and answered exactly.

    What was recorded after the load event may be left out, and may be under way when the client
    has seen enough: then the server has answered a request that the client does not list.
    """
    assert_ok(record)
    load, replay = load_of(record), record.replay
    assert load is not None and replay is not None
    assert (replay.inexact, replay.missed) == ((), ())
    requested = Counter(request.url for request in load.requests)
    due = Counter(entry.url for entry in archive.entries if not entry.after_load)
    recorded = Counter(entry.url for entry in archive.entries)
    assert due <= requested <= recorded
    under_way = (recorded - due) - (requested - due)
    assert requested.total() <= replay.exact <= (requested + under_way).total()
