"""Pages that would hold up, mislead or overrun a recorder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.pages.build import build_page
from wings.pages.exchange import Recording
from wings.pages.har_export import write_archive
from wings.pages.recorder import RecordError, RecordOrder, record, session
from wings.pages.recorder.confinement import choose_scratch
from wings.pages.recorder.session import describe_failure
from wings.pages.tests.recorder.site import WWW, Answer, Site, serving, typed
from wings.pages.verify import verify_archive


def load(scratch: Path, page: str, *, timeout_s: float = 300, **more: Answer) -> Recording:
    """Record a page of its own site; ``more`` are its other files."""
    site = Site()
    site.put(f"{WWW}/", typed(f"<title>t</title>{page}".encode(), "text/html"))
    for name, answer in more.items():
        site.put(f"{WWW}/{name}", answer)
    with serving(site):
        order = RecordOrder(f"{WWW}/", wait_s=1, timeout_s=timeout_s, resolver_rules=site.rules)
        return record(order, scratch, lambda _line: None)


def paths(recording: Recording) -> list[str]:
    return [exchange.url.removeprefix(WWW) for exchange in recording.exchanges]


@pytest.mark.browser
def test_dialogs_do_not_hold_up_the_page(open_scratch: Path) -> None:
    script = "<script>alert(1); confirm(2); prompt(3); alert(4); fetch('/after')</script>"
    recording = load(open_scratch, script, after=typed(b"", "text/plain"))
    assert "/after" in paths(recording)
    assert "Dialogs of the page were accepted: 2 alert, 1 confirm, 1 prompt." in recording.notes


@pytest.mark.browser
def test_no_window_is_opened_beside_the_page(open_scratch: Path) -> None:
    script = "<script>open('/window'); onload = () => open('/window')</script>"
    recording = load(open_scratch, script, window=typed(b"", "text/html"))
    assert paths(recording) == ["/"]


@pytest.mark.browser
def test_a_page_that_goes_on_to_another_is_told(open_scratch: Path) -> None:
    refresh = "<meta http-equiv=refresh content='0;url=/next'>"
    recording = load(open_scratch, refresh, next=typed(b"<p>next", "text/html"))
    assert paths(recording) == ["/", "/next"]
    (note,) = recording.notes
    assert note == (
        f"Page that this one went on to, whose requests are kept as its own (record that one): "
        f"{WWW}/next."
    )


@pytest.mark.nightly
@pytest.mark.browser
def test_a_page_that_is_busy_for_ever_is_kept(open_scratch: Path) -> None:
    script = "<script>onload = () => setTimeout(() => { for (;;); }, 0)</script>"
    recording = load(open_scratch, script, timeout_s=30)
    assert paths(recording) == ["/"]
    assert any("did not answer after its load event" in note for note in recording.notes)


@pytest.mark.browser
def test_an_error_page_is_told(open_scratch: Path) -> None:
    site = Site()
    with serving(site):
        order = RecordOrder(f"{WWW}/no", wait_s=1, resolver_rules=site.rules)
        recording = record(order, open_scratch, lambda _line: None)
    assert f"Page itself was answered with status 404: {WWW}/no." in recording.notes


@pytest.mark.browser
def test_a_page_without_an_end_does_not_fill_the_disk(
    open_scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_LOG_BYTES", 1 << 20)
    with pytest.raises(RecordError, match=r"network log has more than 1\.0 MiB"):
        load(open_scratch, "<script src=/big></script>",
             big=typed(b"// \n" * 800_000, "text/javascript"))  # fmt: skip
    assert not list(open_scratch.iterdir())


@pytest.mark.browser
def test_redirects_in_a_circle_end_after_one_round(open_scratch: Path, tmp_path: Path) -> None:
    names = ("a", "b", "c", "self")
    to = dict(zip(names, ("b", "c", "b", "self"), strict=True))
    answers = {name: Answer(b"", "302 Found", (("Location", f"/{to[name]}"),)) for name in names}
    recording = load(open_scratch, "<img src=/a><img src=/self>", timeout_s=300, **answers)
    found = [(each.url.removeprefix(WWW), each.status) for each in recording.exchanges]
    assert sorted(found) == [("/", 200), ("/a", 302), ("/b", 302), ("/c", 200), ("/self", 200)]
    (note,) = (each for each in recording.notes if each.startswith("Redirects in a circle"))
    assert (f"{WWW}/c" in note, f"{WWW}/self" in note) == (True, True), note
    write_archive(tmp_path / "page", recording, licence="mine")
    assert verify_archive(build_page(tmp_path / "page", tmp_path / "built")) == []


@pytest.mark.browser
def test_what_the_browser_cannot_load_is_one_sentence(open_scratch: Path) -> None:
    site = Site()
    moved = (("Location", f"{WWW}/"),)
    site.put(f"{WWW}/", Answer(b"", "302 Found", moved))
    with serving(site):
        order = RecordOrder(f"{WWW}/", resolver_rules=site.rules)
        with pytest.raises(RecordError) as caught:
            record(order, open_scratch, lambda _line: None)
    assert str(caught.value) == (
        f"{WWW}/: the browser could not load it: net::ERR_TOO_MANY_REDIRECTS "
        "(it redirects without an end: record the address behind it, or try --user-agent)"
    )


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("net::ERR_CERT_DATE_INVALID at https://x.test/", "ERR_CERT_DATE_INVALID (its certif"),
        ("net::ERR_ABORTED at http://x.test/a at b", "ERR_ABORTED (it is no page"),
        ("net::ERR_NEW at http://x.test/", "could not load it: net::ERR_NEW"),
        ("the page crashed", "could not load it: the page crashed (it may"),
    ],
)
def test_failures_in_words(said: str, sentence: str) -> None:
    assert sentence in describe_failure(said)
    assert "x.test" not in describe_failure(said)


def test_a_closed_folder_is_no_scratch_for_an_ordinary_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert choose_scratch(closed) == closed
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    chosen = choose_scratch(closed)
    assert chosen != closed
    assert all(folder.stat().st_mode & 0o001 for folder in (chosen, *chosen.parents))
