"""The verb ``pages record`` with a recorder that needs no browser."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest

from firstflight.cli.exits import run_command
from testbed.archive.reading import read_archive
from testbed.base import places
from testbed.base.errors import (
    EXIT_CONFIGURATION,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    MissingError,
)
from testbed.pages.authority import make_authority
from testbed.pages.catalogue import read_facts
from wings.pages.exchange import Recording
from wings.pages.recorder import RecordError, RecordOrder
from wings.pages.tests.recordings import ROOT_URL, make_exchange, make_recording
from wings.pages.verbs import record as cli_record

COMMAND: click.Command = cli_record.record_command
Tell = Callable[[str], None]
Capsys = pytest.CaptureFixture[str]


class Recorder:
    """Stands in for the browser."""

    def __init__(self) -> None:
        self.orders: list[RecordOrder] = []
        self.scratches: list[Path] = []
        secret = make_exchange(ROOT_URL + "a?token=8f14e45fceea167a", b"twelve bytes")
        self.result: Recording | Exception = replace(
            make_recording(secret), notes=("No response (net::ERR_FAILED): http://x.test/.",)
        )
        self.signal = 0

    def __call__(self, order: RecordOrder, scratch: Path, tell: Tell) -> Recording:
        self.orders.append(order)
        self.scratches.append(scratch)
        tell("3 requests, 4.0 KiB")
        if self.signal:
            os.kill(os.getpid(), self.signal)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorder:
    fake = Recorder()
    monkeypatch.setattr(cli_record, "record", fake)
    monkeypatch.setattr(cli_record, "set_up_recording", Path)
    monkeypatch.setattr(places, "PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    return fake


def run(*arguments: str) -> int:
    return run_command(COMMAND, args=list(arguments), prog_name="record")


def pages() -> list[str]:
    return [path.name for path in places.PAGES.iterdir()]


def test_it_becomes_a_page(recorder: Recorder, capsys: Capsys) -> None:
    assert run(ROOT_URL, "--name", "mine", "--licence", "mine alone", "--title", "A") == EXIT_OK
    out, err = capsys.readouterr()
    assert out.startswith("mine: ")
    assert "No response (net::ERR_FAILED): http://x.test/." in out
    assert "./run.sh pages verify mine" in out
    assert "3 requests, 4.0 KiB" in err
    archive = read_archive(places.PAGES / "mine")
    assert archive.root_url == ROOT_URL
    facts = read_facts(places.PAGES / "mine" / "page.toml")
    assert (facts.licence, facts.title) == ("mine alone", "A")
    assert not recorder.scratches[0].exists()


@pytest.mark.parametrize("kept", [False, True])
def test_secrets_are_removed_unless_kept(recorder: Recorder, kept: bool) -> None:
    assert recorder.result
    assert run(ROOT_URL, "--name", "mine", *(["--keep-secrets"] if kept else [])) == EXIT_OK
    assert ("8f14e45fceea167a" in (places.PAGES / "mine" / "page.har").read_text()) == kept


def test_anonymized_it_is_a_table(recorder: Recorder) -> None:
    page = make_exchange(ROOT_URL, b"<p>a" + b" " * 2000, mime="text/html", how="root")
    recorder.result = replace(make_recording(), exchanges=(replace(page, initiator=None),))
    assert run(ROOT_URL, "--name", "mine", "--anonymize") == EXIT_OK
    names = sorted(path.name for path in (places.PAGES / "mine").iterdir())
    assert names == ["page.toml", "resources.csv"]


def test_options_become_the_order(recorder: Recorder, tmp_path: Path) -> None:
    key = tmp_path / "authority.pem"
    key.write_bytes(make_authority(())["authority.pem"])
    options = ["--wait", "1", "--timeout", "9", "--viewport", "800x600", "--user-agent", "Me",
               "--scroll", "--pin", "--resolver-rule", "MAP a b", "--resolver-rule", "MAP c d",
               "--ca", str(key)]  # fmt: skip
    assert run(ROOT_URL, "--name", "mine", *options) == EXIT_OK
    expected = RecordOrder(url=ROOT_URL, wait_s=1.0, viewport=(800, 600), user_agent="Me",
                           scroll=True, pinned=True, timeout_s=9.0,
                           resolver_rules=("MAP a b", "MAP c d"), authority=key)  # fmt: skip
    assert recorder.orders == [expected]


def test_all_problems_before_anything_is_loaded(recorder: Recorder, capsys: Capsys) -> None:
    wrong = ["file:///etc/passwd", "--name", "../x", "--wait", "0", "--viewport", "1x1"]
    assert run(*wrong) == EXIT_CONFIGURATION
    err = capsys.readouterr().err
    assert all(word in err for word in ("file:///", "'../x'", "a wait of 0 s", "1x1")), err
    assert not recorder.orders
    assert not pages()


@pytest.mark.parametrize("viewport", ["800", "axb", "800x", "800x600x3"])
def test_a_wrong_viewport(recorder: Recorder, viewport: str) -> None:
    assert run(ROOT_URL, "--name", "mine", "--viewport", viewport) == EXIT_CONFIGURATION
    assert not recorder.orders


def test_a_page_is_replaced_only_when_asked(recorder: Recorder) -> None:
    assert run(ROOT_URL, "--name", "mine") == EXIT_OK
    assert run(ROOT_URL, "--name", "mine") == EXIT_CONFIGURATION
    assert len(recorder.orders) == 1
    assert run(ROOT_URL, "--name", "mine", "--replace") == EXIT_OK
    assert pages() == ["mine"]


def test_a_failed_recording_leaves_nothing(recorder: Recorder, capsys: Capsys) -> None:
    recorder.result = RecordError("no load event in 9 s; give it more with --timeout")
    assert run(ROOT_URL, "--name", "mine") == RecordError.exit_code
    assert "--timeout" in capsys.readouterr().err
    assert not pages()
    assert not recorder.scratches[0].exists()


def test_what_recording_takes_is_set_up_before_anything_else(
    recorder: Recorder, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Path:
        raise MissingError("recording takes node")

    monkeypatch.setattr(cli_record, "set_up_recording", refuse)
    assert run(ROOT_URL, "--name", "mine") == EXIT_MISSING
    assert capsys.readouterr().err == "error: recording takes node\n"
    assert not recorder.orders
    assert not pages()


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing(recorder: Recorder, number: signal.Signals) -> None:
    # In the background of a script SIGINT is ignored, and nobody could interrupt.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        before = signal.getsignal(number)
        recorder.signal = number
        assert run(ROOT_URL, "--name", "mine") == EXIT_INTERRUPTED
        assert signal.getsignal(number) == before
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert not pages()
    assert not recorder.scratches[0].exists()


def test_plain_progress_is_not_a_flood() -> None:
    written: list[str] = []
    times = iter([0.0, 0.0, 1.9, 2.1, 2.1])
    tell = cli_record.throttled(written.append, lambda: next(times))
    for line in ("a", "b", "c"):
        tell(line)
    assert written == ["a", "c"]


@pytest.mark.parametrize("host", ["127.0.0.7", "localhost", "[::1]"])
def test_what_could_not_be_replayed_is_not_recorded(
    recorder: Recorder, capsys: Capsys, host: str
) -> None:
    url = f"http://{host}:8707/"
    assert run(url, "--name", "mine") == EXIT_CONFIGURATION
    said = capsys.readouterr().err
    assert f"--resolver-rule 'MAP www.mine.test {host}'" in said
    assert "http://www.mine.test:8707/" in said
    assert recorder.orders == []


@pytest.mark.parametrize(
    ("host", "asked"),
    [("b\u00fccher.example", "xn--bcher-kva.example"),
     ("Stra\u00dfe.example", "xn--strae-oqa.example"), ("www.x.test:8443", "www.x.test:8443")],
)  # fmt: skip
def test_a_name_is_asked_for_as_browsers_do(recorder: Recorder, host: str, asked: str) -> None:
    assert run(f"https://{host}/a?b", "--name", "mine") == EXIT_OK
    assert recorder.orders[0].url == f"https://{asked}/a?b"


def test_a_url_without_a_scheme_gets_one(recorder: Recorder, capsys: Capsys) -> None:
    assert run("www.x.test", "--name", "mine") == EXIT_CONFIGURATION
    assert "write http://www.x.test or https://www.x.test" in capsys.readouterr().err
    assert recorder.orders == []


def test_resolver_rules_may_be_one_list_as_serve_prints_it(recorder: Recorder) -> None:
    rules = "MAP a.test:80 127.0.0.1:1, MAP * ~NOTFOUND"
    assert run(ROOT_URL, "--name", "mine", "--resolver-rule", rules) == EXIT_OK
    assert recorder.orders[0].resolver_rules == ("MAP a.test:80 127.0.0.1:1", "MAP * ~NOTFOUND")
