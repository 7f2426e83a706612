"""Tables whose numbers ask for hours or for memory without end: built at once, or refused."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.synthesis import bodies as synthesis
from wings.pages.synthesis import filler as text
from wings.pages.synthesis.bodies import discover, synthesise
from wings.pages.synthesis.deflate import Piece, gzip_size, write_gzip
from wings.pages.synthesis.discovery import Discovery
from wings.pages.synthesis.filler import BLOCK, Fill, TooSmallError, least_gzipped, write_gzipped
from wings.pages.table import COLUMNS, ResourceRow, parse_table
from wings.pages.tests.importing.site import Sent, devtools

ROOT = "0,,a.example,text/html,200,9000,,root,,,\n"
HEAD = ",".join((*COLUMNS, "protocol", "head_bytes")) + "\n"


def table(*rows: str) -> tuple[ResourceRow, ...]:
    return parse_table(HEAD + "".join(row + "\n" for row in rows), "t.csv")


def row(
    number: int, parent: str, mime: str, transfer: int, body: int | str, head: int | str
) -> str:
    return f"{number},{parent},a.example,{mime},200,{transfer},{body},url-in-html,,,,http,{head}"


ROOT_ROW = "0,,a.example,text/html,200,9000,,root,,,,http,"


@pytest.mark.parametrize("decoded", [1, 5, 300, 20_000, 100_000])
@pytest.mark.parametrize("fills", [1, 3])
def test_the_least_size_is_the_first_that_can_be_written(decoded: int, fills: int) -> None:
    template = [part for _ in range(fills) for part in (b"x", Fill())][: 2 * fills]
    decoded = max(decoded, fills)
    least = least_gzipped(template, BLOCK, decoded)
    assert len(write_gzipped(template, BLOCK, decoded, least, "s").data) == least
    with pytest.raises(TooSmallError):
        write_gzipped(template, BLOCK, decoded, least - 1, "s")


def test_one_look_tells_how_much_of_the_head_a_body_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    real = gzip_size

    def counted(literals: int, runs: list[int]) -> int:
        looks.append(literals)
        return real(literals, runs)

    monkeypatch.setattr(text, "gzip_size", counted)
    rows = table(ROOT_ROW, row(1, "0", "application/javascript", 8040, 500_000, 8000))
    page = synthesise("page", "", rows)
    body = page.bodies[1]
    assert (body.gzipped, body.decoded_size) == (True, 500_000)
    assert 40 < len(body.data) < 8040 - 330
    assert len(looks) < 100  # with one for each byte of the head there were 3,000


def test_a_size_that_cannot_be_is_not_searched_for() -> None:
    rows = table(ROOT_ROW, row(1, "0", "text/css", 8040, 50_000_000, 8000))
    found = discover("page", "", rows)
    assert synthesis._body(found, rows[1], "s", "").gzipped is False


def test_long_runs_are_written_as_before() -> None:
    pieces = [Piece(b"ab", 1_000_003), Piece(b"c"), Piece(b"d", 70)]
    size = gzip_size(4, [1_000_003, 70]) + 5
    data = write_gzip(pieces, size)
    assert len(data) == size
    digest = "f46ad70edd38dfacd86dc593e792bff09cb0a02a7133b69cfcc90cf15b9b7c0c"
    assert hashlib.sha256(data).hexdigest() == digest


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (row(1, "0", "text/css", 10**12, "", ""), f"transfer_bytes is {10**12}, expected at most"),
        (row(1, "0", "text/css", 900, 10**12, ""), "body_bytes is 1000000000000, expected at most"),
        (row(1, "0", "text/css", 900, "9" * 5000, ""), "body_bytes is '999"),
        (row(1, "0", "text/css", 900, "", "").replace(",,,,http", f",,{10**30},,http"),
         f"start_ms is {10**30}, expected at most"),
        (row(1, "0", "text/css", 900, "", "").replace(",,,,http", f",-{10**30},,,http"),
         f"gap_ms is -{10**30}, expected at most"),
        (row(1, "0", "text/css", 900, "", "") + "x" * 200_000, "no CSV: field larger"),
    ],
)  # fmt: skip
def test_numbers_that_no_page_has_are_refused(cells: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        table(ROOT_ROW, cells)
    assert problem in str(caught.value)


def test_the_whole_is_bounded() -> None:
    rows = [row(n, "0", "text/css", 900, 60_000_000, "") for n in range(1, 11)]
    with pytest.raises(ConfigurationError, match=r"bodies of .* MiB in all, at most 512 MiB"):
        table(ROOT_ROW, *rows)
    many = [row(n, "0", "text/css", 900, "", "") for n in range(1, 5001)]
    with pytest.raises(ConfigurationError, match="5001 rows, at most 5000"):
        table(ROOT_ROW, *many)


@pytest.mark.parametrize("upwards", [False, True])
def test_a_chain_without_end_is_refused(upwards: bool) -> None:
    deep = [row(n, str(n - 1), "text/javascript", 900, "", "") for n in range(1, 5000)]
    order = reversed(deep) if upwards else deep
    with pytest.raises(ConfigurationError, match=r"is more than 100 steps from the root"):
        table(ROOT_ROW, *order)
    allowed = [row(n, str(n - 1), "image/png", 900, "", "") for n in range(1, 101)]
    found = table(ROOT_ROW, *(reversed(allowed) if upwards else allowed))
    assert len(synthesise("page", "", found).bodies) == 101


def test_a_har_whose_chain_has_no_end_is_refused(tmp_path: Path) -> None:
    urls = [f"https://a.example/{n}" for n in range(400)]
    site = [Sent(urls[0], "text/html", b"x" * 900, document=True)]
    site += [
        Sent(url, "text/javascript", b"x" * 900, initiator=before, start_ms=n)
        for n, (before, url) in enumerate(pairwise(urls), 1)
    ]
    path = tmp_path / "x.har"
    path.write_text(json.dumps(devtools(tuple(site), bodies=False)))
    with pytest.raises(ConfigurationError, match="is more than 100 steps from the root"):
        write_page(tmp_path / "page", read_recording(path), WriteOptions())
    assert not (tmp_path / "page").exists()


def test_rounds_of_moving_references_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "_MOST_ROUNDS", 1)
    rows = table(ROOT_ROW, row(1, "0", "text/javascript", 340, "", 330),
                 row(2, "1", "image/png", 900, "", ""))  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"rows 1 are still too small .* 1 rounds"):
        discover("page", "", rows)


def test_references_are_found_by_carrier_element_and_document() -> None:
    rows = table(ROOT_ROW, row(1, "0", "text/css", 900, "", ""),
                 row(2, "1", "image/png", 900, "", ""),
                 row(3, "2", "image/png", 900, "", ""))  # fmt: skip
    page = Discovery(rows)
    for one in rows:
        mine = [ref for ref in page.references if ref.carrier == one.id and ref.after is None]
        assert page.carried[one.id] == mine
        assert page.later[one.id] == [ref for ref in page.references if ref.after == one.id]
        assert page.within[one.id] == [ref for ref in page.references if ref.document == one.id]


def test_five_thousand_rows_with_every_kind_are_built(tmp_path: Path) -> None:
    kinds = ("text/html", "text/css", "text/javascript", "image/png", "application/json")
    rows = [row(n, str((n - 1) // 5), kinds[n % 5], 2000, 4000, "") for n in range(1, 2500)]
    big = ROOT_ROW.replace("9000", "900000")
    assert len(synthesise("page", "", table(big, *rows)).bodies) == 2500
