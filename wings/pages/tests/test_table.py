"""The resource table: what is read from it, and every mistake at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.table import format_table, parse_table, read_table
from wings.pages.tests.conftest import HEADER, NAMES, PAGES

ROOT = "0,,a.example,text/html,200,1000,2000,root,,95,400\n"


def problems(rows: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_table(HEADER + rows, "t.csv")
    return caught.value.problems


def test_missing_numbers_are_none() -> None:
    rows = parse_table(HEADER + ROOT + "1,0,b.example,,200,480,,time-inferred,,,\n", "t.csv")
    assert rows[0].body_bytes == 2000
    assert rows[1].mime == ""
    assert rows[1].body_bytes is rows[1].gap_ms is rows[1].start_ms is rows[1].dur_ms is None


def test_every_mistake_is_told_with_its_line() -> None:
    found = problems(
        "0,,A b,text/html,200,1000,x,root,,,\n1,0,b.example,png,418,12,,seen,,-1,\n2,0\n"
    )
    assert [problem.split(": ", 1) for problem in found] == [
        ["t.csv:2", "host is 'A b', expected a host name in lower case"],
        ["t.csv:2", "body_bytes is 'x', expected a whole number or nothing"],
        ["t.csv:3", "transfer_bytes is 12, expected at least 330"],
        ["t.csv:3", "status is 418, expected one of "
                    "[200, 204, 301, 302, 303, 307, 308, 403, 404, 410, 500, 503]"],
        ["t.csv:3", "mime is 'png', expected type/subtype or none"],
        ["t.csv:3", "how is 'seen', expected one of redirect, root, same-host-js, time-inferred, "
                    "url-in-css, url-in-html, url-in-js, url-in-main-html, url-in-other"],
        ["t.csv:3", "start_ms is -1, expected at least 0"],
        ["t.csv:4", "2 cells, expected 11"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "there are no rows"),
        (ROOT + ROOT, "id 0 is there twice"),
        (ROOT + "1,9,b.example,,200,480,,url-in-js,,,\n", "parent 9 is not in the table"),
        (ROOT + "1,,b.example,,200,480,,root,,,\n", "the first row, and only it"),
        (ROOT + "1,0,b.example,,302,480,,url-in-js,,,\n", "302 without a row"),
        (ROOT + "1,0,b.example,,200,480,,redirect,,,\n", "parent 0 redirects here but is no 3xx"),
        (ROOT + "1,0,b.example,,204,481,,url-in-js,,,\n", "a 204 has no body"),
        (ROOT + "1,2,b.example,,200,480,,url-in-js,,,\n2,1,b.example,,200,480,,url-in-js,,,\n",
         "id 1 is its own ancestor"),
        (ROOT + "1,0,b.example,,302,480,,url-in-js,,,\n2,1,b.example,,200,480,,redirect,,,\n"
         "3,1,b.example,,200,480,,redirect,,,\n", "parent 1 redirects to two rows"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_together(rows: str, message: str) -> None:
    assert any(message in problem for problem in problems(rows))


MIXED = ": browsers block this as mixed content"
OPTIONAL = HEADER.strip() + ",protocol,head_bytes\n"


def test_optional_columns_have_defaults() -> None:
    plain = parse_table(HEADER + ROOT, "t.csv")[0]
    assert (plain.protocol, plain.scheme, plain.head_size) == ("http", "http", 480)
    full = parse_table(OPTIONAL + ROOT.strip() + ",h2,\n", "t.csv")[0]
    assert (full.protocol, full.scheme, full.head_size) == ("h2", "https", 480)
    full = parse_table(OPTIONAL + ROOT.strip() + ",https,700\n", "t.csv")[0]
    assert (full.scheme, full.head_size) == ("https", 700)
    assert parse_table(HEADER.strip() + ",protocol\n" + ROOT.strip() + ",h2\n", "t")[0] == replace(
        full, protocol="h2", head_bytes=None
    )


def test_what_is_formatted_is_read_back() -> None:
    rows = parse_table(OPTIONAL + ROOT.strip() + ",https,700\n", "t.csv")
    assert parse_table(format_table(rows), "t.csv") == rows
    late = replace(rows[0], gap_ms=-3.4, start_ms=12.6, dur_ms=0.4)
    assert format_table([late]).endswith(",root,-3,13,0,https,700\n")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROOT.strip() + ",h3,\n", "t.csv:2: protocol is 'h3', expected one of http, https, h2"),
        (ROOT.strip() + ",http,1001\n", "t.csv:2: head_bytes is 1001, more than transfer_bytes"),
        (ROOT.strip() + ",http,12\n", "t.csv:2: head_bytes is 12, expected at least 330"),
        (ROOT.strip() + ",https,\n1,0,b.example,,200,480,,url-in-js,,,,http,\n",
         "t.csv:3: protocol http below the https document 0" + MIXED),
        (ROOT.strip() + ",http,\n1,0,b.example,text/html,200,480,,url-in-js,,,,h2,\n"
         "2,1,c.example,text/css,200,480,,url-in-html,,,,h2,\n"
         "3,2,d.example,image/gif,200,480,,url-in-css,,,,http,\n",
         "t.csv:5: protocol http below the https document 1" + MIXED),
        (ROOT.strip() + ",http,\n1,0,a.example,,200,480,,url-in-js,,,,https,\n",
         "t.csv:3: host a.example has protocol https here and http above"),
    ],
)  # fmt: skip
def test_optional_columns_are_checked(rows: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_table(OPTIONAL + rows, "t.csv")
    assert caught.value.problems == [message]


def test_a_plain_page_may_use_what_is_secure() -> None:
    rows = ROOT.strip() + ",http,\n1,0,b.example,text/css,200,480,,url-in-js,,,,h2,\n"
    rows += "2,1,c.example,image/gif,200,480,,url-in-css,,,,http,\n"
    assert len(parse_table(OPTIONAL + rows, "t.csv")) == 3


def test_wrong_columns_are_named() -> None:
    for header in ("id,host\n", HEADER.strip() + ",head_bytes\n"):
        with pytest.raises(ConfigurationError, match=r"t\.csv:1: the columns are 'id,"):
            parse_table(header, "t.csv")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no\.csv: cannot be read"):
        read_table(tmp_path / "no.csv")


@pytest.mark.parametrize(
    ("name", "rows", "transfer_bytes"),
    [
        ("amazon", 68, 666_093), ("amazon-fit2011", 41, 433_464), ("average", 44, 342_320),
        ("file-10k", 1, 10_720),
        ("file-1m", 1, 1_049_056), ("file-200k", 1, 205_280), ("file-256k", 1, 262_624),
        ("file-50k", 1, 51_680), ("file-60k", 1, 61_920), ("nytimes", 161, 1_038_176),
        ("nytimes-fit2011", 109, 894_963), ("tum-website", 7, 249_120), ("wikipedia", 29, 315_149),
        ("wikipedia-fit2011", 25, 229_075), ("wsj", 133, 1_281_782),
    ],
)  # fmt: skip
def test_committed_tables_are_whole(name: str, rows: int, transfer_bytes: int) -> None:
    table = read_table(PAGES / name / "resources.csv")
    assert len(table) == rows
    assert sum(row.transfer_bytes for row in table) == transfer_bytes


def test_the_average_page_is_as_the_source_says() -> None:
    table = read_table(PAGES / "average" / "resources.csv")
    sizes = [row.body_bytes or 0 for row in table]
    assert (fmean(sizes), median(sizes)) == (7300.0, 2400.0)
    assert len({row.host for row in table}) == 7


def test_no_page_is_left_out() -> None:
    assert len(NAMES) == 16
