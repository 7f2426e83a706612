"""A recording as a table: every number of it, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.reading import read_archive
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from wings.pages.exchange import PageExchange, Recording
from wings.pages.importing.recorded_table import LICENCE_TABLE, make_table, write_table
from wings.pages.table import ResourceRow, read_table

ROOT = PageExchange("https://www.a.example/secret/path?q=1", 200, how="root", headers_size=700,
                    body=None, body_size=4000, decoded_size=16_000, mime="text/html", start_ms=0.0,
                    dur_ms=100.4)  # fmt: skip


def child(url: str, start_ms: float | None = 50.0, **more: Any) -> PageExchange:
    base = PageExchange(url, 200, headers_size=400, body=None, body_size=1000, decoded_size=1000,
                        mime="image/png", initiator=ROOT.url, how="parser", start_ms=start_ms,
                        dur_ms=20.0)  # fmt: skip
    return replace(base, **more)


def recording(*exchanges: PageExchange, **more: Any) -> Recording:
    root = exchanges[0] if exchanges and exchanges[0].how == "root" else ROOT
    rest = exchanges if root is ROOT else exchanges[1:]
    base = Recording("Secret title", root.url, date(2026, 1, 2), "made up", (root, *rest))
    return replace(base, **more)


def rows(*exchanges: PageExchange) -> tuple[ResourceRow, ...]:
    return make_table(recording(*exchanges)).rows


def notes(*exchanges: PageExchange) -> tuple[str, ...]:
    return make_table(recording(*exchanges)).notes


def test_numbers_are_kept_and_nothing_else() -> None:
    found = rows(child("https://img.a.example:8443/p.png?t=1", protocol="h2", headers_size=None))
    assert found == (
        ResourceRow("0", None, "www.a.example", "text/html", 200, 4700, 16_000, "root", None, 0,
                    100, "https", 700),
        ResourceRow("1", "0", "img.a.example", "image/png", 200, 1480, 1000, "url-in-main-html",
                    -50, 50, 20, "h2", None),
    )  # fmt: skip
    assert notes() == ()


def test_rows_are_in_order_of_time_and_after_load_is_left_out() -> None:
    exchanges = [child("https://b.example/1", 90.0), child("https://b.example/2", None),
                 child("https://b.example/3", 20.0),
                 child("https://b.example/4", 200.0, after_load=True)]  # fmt: skip
    assert [row.start_ms for row in rows(*exchanges)] == [0, 20, 90, None]
    assert notes(*exchanges) == ("Requests after the load event, left out: 1.",)


def test_parents_come_from_initiators() -> None:
    script = child("https://b.example/s.js", 10.0, mime="text/javascript")
    late = child("https://b.example/late.js", 70.0, mime="text/javascript")
    exchanges = [
        script,
        child("https://b.example/1", 20.0, initiator=script.url, how="script"),
        child("https://b.example/2", 30.0, initiator=None, how="other"),
        child("https://b.example/3", 40.0, initiator=late.url, how="script"),
        child("https://b.example/4", 50.0, initiator="https://nowhere.example/", how="css"),
        late,
    ]
    found = rows(*exchanges)
    assert [row.parent for row in found] == [None, "0", "1", "0", "0", "0", "0"]
    assert [row.how for row in found] == [
        "root", "url-in-main-html", "url-in-js", "time-inferred", "url-in-js", "url-in-css",
        "url-in-main-html",
    ]  # fmt: skip
    assert found[2].gap_ms == -10
    assert len(notes(*exchanges)) == 2


def test_a_circle_of_initiators_is_broken() -> None:
    one = child("https://b.example/1", 10.0, initiator="https://b.example/2", how="script")
    two = child("https://b.example/2", 20.0, initiator="https://b.example/1", how="script")
    assert [row.parent for row in rows(one, two)] == [None, "0", "1"]


def test_the_same_url_twice_is_two_rows() -> None:
    twice = child("https://b.example/1")
    assert [(row.id, row.parent) for row in rows(twice, twice)][1:] == [("1", "0"), ("2", "0")]


def test_redirects_are_chains() -> None:
    to = (("Location", "https://b.example/2"),)
    exchanges = [
        child("https://b.example/1", 10.0, status=302, headers=to),
        child("https://b.example/2", 20.0, status=307, how="other", initiator=None),
        child("https://b.example/3", 30.0, how="redirect", initiator="https://b.example/2"),
        child("https://b.example/4", 40.0, how="script", initiator="https://b.example/1"),
        child("https://b.example/5", 50.0, status=301),
    ]
    found = rows(*exchanges)
    assert [(row.status, row.parent, row.how) for row in found[1:]] == [
        (302, "0", "url-in-main-html"), (307, "1", "redirect"), (200, "2", "redirect"),
        (200, "3", "url-in-js"), (200, "0", "url-in-main-html"),
    ]  # fmt: skip
    assert "Statuses replaced by the nearest that a table holds: 1." in notes(*exchanges)


def test_the_document_is_behind_the_roots_redirects() -> None:
    root = replace(ROOT, url="http://a.example/", status=301, body_size=0, decoded_size=0)
    found = rows(root, replace(ROOT, how="redirect", initiator=root.url, start_ms=5.0),
                 child("https://b.example/1", initiator=ROOT.url),
                 child("https://b.example/2", initiator=None, how="other"))  # fmt: skip
    assert [(row.parent, row.how) for row in found] == [
        (None, "root"), ("0", "redirect"), ("1", "url-in-main-html"), ("1", "time-inferred"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "held"),
    [(200, 200), (201, 200), (206, 200), (204, 204), (205, 204), (300, 200), (401, 403),
     (404, 404), (410, 410), (418, 404), (429, 404), (500, 500), (502, 503), (505, 500)],
)  # fmt: skip
def test_statuses(recorded: int, held: int) -> None:
    row = rows(child("https://b.example/1", status=recorded))[1]
    assert row.status == held
    if held == 204:
        assert (row.transfer_bytes, row.body_bytes) == (400, None)


def test_a_revalidation_is_left_out_and_told() -> None:
    again = child("https://b.example/1", status=304)
    made = make_table(recording(child("https://b.example/1"), again))
    assert [row.status for row in made.rows] == [200, 200]
    assert "Revalidations, for which a table has no status, left out: 1." in made.notes


def test_heads() -> None:
    exchanges = [
        child("https://b.example/1", headers_size=200),
        child("https://c.example/2", headers_size=None),
        child("https://d.example/3", headers_size=None, method="POST"),
    ]
    found = rows(*exchanges)
    assert [(row.head_bytes, row.transfer_bytes) for row in found[1:]] == [
        (330, 1330), (None, 1480), (None, 1480),
    ]  # fmt: skip
    assert notes(*exchanges) == (
        "Requests with another method, made GET: 1.",
        "Heads of unknown size, taken for 480 bytes: 2.",
        "Bytes added to heads, which have at least 330: 130.",
    )


def test_types_and_hosts_are_what_a_table_holds() -> None:
    found = rows(
        child("https://My_Host-.example./1", mime="image/PNG; x"),
        child("https://[2001:db8::1]:8080/2", mime=""),
        child("https://10.0.0.1/3"),
    )
    assert [(row.host, row.mime) for row in found[1:]] == [
        ("my-host.example", ""), ("2001-db8-1", ""), ("10.0.0.1", "image/png"),
    ]  # fmt: skip


def test_one_protocol_for_each_host_and_no_mixed_content() -> None:
    exchanges = [child("https://b.example/1", protocol="h2", headers_size=None),
                 child("https://b.example/2", headers_size=1234), child("http://b.example/3"),
                 child("http://c.example/4")]  # fmt: skip
    found = rows(*exchanges)
    assert [row.protocol for row in found] == ["https", "h2", "h2", "h2", "https"]
    assert [row.transfer_bytes for row in found[1:]] == [1480, 1480, 1480, 1400]
    told = "Requests over http, raised to https like their host or page: 2."
    assert notes(*exchanges) == (told,)


def test_a_frame_may_raise_what_is_below_it() -> None:
    root = replace(ROOT, url="http://a.example/")
    frame = child("https://b.example/", initiator=root.url, mime="text/html")
    found = rows(root, frame, child("http://c.example/1", initiator=root.url),
                 child("http://d.example/2", initiator=frame.url))  # fmt: skip
    assert [row.protocol for row in found] == ["http", "https", "http", "https"]


def test_a_small_document_lets_its_script_ask() -> None:
    script = child("https://b.example/app.js", 10.0, mime="text/javascript", body_size=60_000)
    many = [child(f"https://b.example/{n}", 20.0 + n) for n in range(100)]
    root = replace(ROOT, body_size=2000, decoded_size=5000)
    found = rows(root, script, *many)
    moved = [row for row in found if row.parent == "1"]
    assert [row.id for row in moved] == [str(n) for n in range(102 - len(moved), 102)]
    assert 50 < len(moved) < 70
    told = f"script, because the document is too small to name them: {len(moved)}."
    assert notes(root, script, *many)[-1].endswith(told)


def test_a_small_document_without_a_script_grows(tmp_path: Path) -> None:
    pictures = [child(f"https://b.example/{n}", 20.0 + n) for n in range(4)]
    page = recording(replace(ROOT, headers_size=340, body_size=191, decoded_size=191), *pictures)
    write_table(tmp_path / "mine", page, licence="none")
    archive = read_archive(build_page(tmp_path / "mine", tmp_path / "cache"))
    assert len(archive.entries) == 5
    assert archive.entries[0].body_size > 191
    added = "Bytes added to the document, which is too small for what it names: "
    assert any(note.startswith(added) for note in make_table(page).notes)


def test_what_is_written_is_a_page(tmp_path: Path) -> None:
    page = recording(
        child("https://b.example/1", protocol="h2", headers_size=None),
        child("https://www.a.example/2", 60.0, headers_size=512, body_size=777),
        notes=("https://x.example/private/path?x=1: no body.",),
        source="Recorded from https://www.a.example/secret/path today.",
    )
    folder = tmp_path / "mine"
    write_table(folder, page, licence=LICENCE_TABLE)
    assert read_table(folder / "resources.csv") == make_table(page).rows
    text = (folder / "page.toml").read_text() + (folder / "resources.csv").read_text()
    for secret in ("secret", "Secret", "private", "q=1"):
        assert secret not in text
    archive = read_archive(build_page(folder, tmp_path / "cache"))
    root, second, third = archive.entries
    assert (root.protocol, root.headers_size, root.body_size) == ("http/1.1", 700, 4000)
    assert (second.protocol, second.headers_size, second.body_size) == ("h2", None, 1000)
    assert second.url == "https://b.example.p.test/1.png"
    assert (third.headers_size, third.body_size) == (512, 777)


def test_nothing_is_written_that_cannot_be_built(tmp_path: Path) -> None:
    page = recording(replace(ROOT, mime="image/png"))
    with pytest.raises(ConfigurationError, match="the page itself is not text/html"):
        write_table(tmp_path / "mine", page, licence="none")
    assert not (tmp_path / "mine").exists()


def test_a_page_that_is_there_is_not_replaced_by_chance(tmp_path: Path) -> None:
    page = recording()
    write_table(tmp_path / "mine", page, licence="one")
    with pytest.raises(ConfigurationError, match="there is a page of this name"):
        write_table(tmp_path / "mine", page, licence="two")
    write_table(tmp_path / "mine", page, licence="two", replace=True)
    assert 'licence = "two"' in (tmp_path / "mine" / "page.toml").read_text()
