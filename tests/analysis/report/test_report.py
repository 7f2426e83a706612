from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import plot
from analysis.report import document as report
from analysis.report.document import write_reports
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from analysis.words import MISSING
from testbed.base.errors import ConfigurationError, StorageError
from testbed.model import Replay, Substitution
from testbed.results.folder import read_records
from tests.analysis.sample import (
    ENVIRONMENT,
    broken,
    conditions,
    experiment,
    record,
    requests,
    write_records,
    write_results,
    write_sample,
)
from tests.measured import load_of

FILES = ("table.csv", "summary.json", "report.html")


class Page(HTMLParser):
    """The elements, attributes and texts of a page, as a browser would see them."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._open = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        (self.scripts if self._open == "script" else self.texts).append(data)


@pytest.fixture(scope="module")
def reported(sample: Path) -> Path:
    write_reports(sample)
    return sample


@pytest.fixture(scope="module")
def summary(reported: Path) -> dict[str, Any]:
    return dict(json.loads((reported / "summary.json").read_text()))


def test_same_bytes_whatever_the_order_of_records(reported: Path) -> None:
    before = {name: (reported / name).read_bytes() for name in FILES}
    lines = (reported / "records.jsonl").read_text().splitlines(keepends=True)
    original = "".join(lines)
    try:
        for seed in range(3):
            random.Random(seed).shuffle(lines)  # noqa: S311 - any order will do
            assert "".join(lines) != original
            (reported / "records.jsonl").write_text("".join(lines))
            write_reports(reported)
            assert {name: (reported / name).read_bytes() for name in FILES} == before
    finally:
        (reported / "records.jsonl").write_text(original)


def test_same_summary_whatever_the_cost_place_and_time(reported: Path, tmp_path: Path) -> None:
    twin = write_sample(tmp_path / "elsewhere", seeds=5)
    slower = [
        replace(r, cost=replace(r.cost, cpu_s=99.0, wall_s=77.0) if r.cost else None, attempt=2)
        for r in read_records(twin)
    ]
    write_records(twin, slower)
    manifest = json.loads((twin / "manifest.json").read_text())
    manifest["created_utc"] = "2031-01-01T00:00:00Z"
    manifest["arguments"] = ["run", "/home/somebody/table1.toml"]
    manifest["environment"]["facts"] = {"cores": "64", "user": "ordinary"}
    (twin / "manifest.json").write_text(json.dumps(manifest))
    write_reports(twin)
    for name in ("table.csv", "summary.json"):
        assert (twin / name).read_bytes() == (reported / name).read_bytes()


def test_summary_has_no_clock_cost_or_path(reported: Path) -> None:
    text = (reported / "summary.json").read_text()
    assert not re.search(
        r"\d{4}-\d\d-\d\d[T ]\d\d:|created|cpu_s|wall_s|virtual_s|\battempt\b", text
    )
    assert not re.search(r'": "/|"/[a-z]', text)
    assert str(reported) not in text


def test_summary_holds_exact_values_proofs_and_captures(summary: dict[str, Any]) -> None:
    cell = next(
        c
        for c in summary["cells"]
        if (c["condition"]["page"], c["condition"]["rtt_ms"], c["condition"]["tfo"])
        == ("amazon", 100.0, True)
    )
    expected = [record(conditions(["amazon"], [100.0], [True])[0], s) for s in range(5)]
    assert [t["seed"] for t in cell["trials"]] == [0, 1, 2, 3, 4]
    assert [t["plt_ms"] for t in cell["trials"]] == [
        load_of(r).plt_ms for r in expected if r.measured
    ]
    assert [t["captures_sha256"] for t in cell["trials"]] == [r.artefacts for r in expected]
    proof = cell["trials"][0]["proof"]
    assert proof["proven"] and proof["syns_with_payload"] == proof["connections"] == 20
    assert {m["name"] for m in cell["trials"][0]["calibration"]} == {
        "rtt", "down_rate", "up_rate", "down_buffer",
    }  # fmt: skip
    assert summary["identity"]["environment"] == ENVIRONMENT.id
    assert summary["identity"]["parts"] == ENVIRONMENT.parts
    assert "facts" not in summary["identity"]
    assert summary["counts"] == {"lab_mismatch": 1, "not run": 1, "ok": 116, "timeout": 1,
                                 "unproven": 1}  # fmt: skip


def test_summary_gives_no_number_for_an_unproven_trial(summary: dict[str, Any]) -> None:
    (trial,) = (
        t for c in summary["cells"] for t in c["trials"] if t["outcome"] == "unproven"
    )  # fmt: skip
    assert trial["plt_ms"] is None
    assert trial["proof"]["problems"]


def test_report_refers_to_nothing_outside(reported: Path) -> None:
    source = (reported / "report.html").read_text()
    page = Page(source)
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form", "use"}
        for name in ("src", "href", "xlink:href", "action", "poster", "data"):
            assert (attributes.get(name) or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    style = source[source.index("<style>") : source.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert "://" not in source.partition("<body>")[0]


def test_the_policy_names_the_script(reported: Path) -> None:
    page = Page((reported / "report.html").read_text())
    policy = next(a["content"] or "" for _, a in page.tags if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    hashed = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}'" in policy


def test_report_says_what_went_wrong(reported: Path) -> None:
    text = " ".join(" ".join(Page((reported / "report.html").read_text()).texts).split())
    assert "116 of 120 loads are recorded as verified by packet capture" in text
    assert "nytimes, 20 ms, Fast Open on, seed 0" in text
    assert "3 of 20 SYNs carry no request" in text
    assert "nginx: <up>" in text
    assert "1 planned load was not run" in text
    assert "△ on: 4 of 5 count, 1 " in text
    assert "The paper's Wikipedia row contradicts itself" in text
    assert "7.3.4-1~bpo13+1" in text
    assert "./run.sh run configs/paper-table1.toml -n 5" in text


def test_report_shows_the_table_with_differences(reported: Path) -> None:
    source = (reported / "report.html").read_text()
    body = source[source.index('<table class="main"') :]
    body = body[body.index("<tbody>") : body.index("</tbody>")]
    rows = [
        [
            re.sub(r"<[^>]+>", " ", cell).split()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)
        ]
        for row in re.findall(r"<tr.*?</tr>", body, re.S)
    ]
    assert len(rows) == 12
    amazon = rows[1]
    assert [cell[0] for cell in amazon[:9]] == ["amazon", "100", "2.720", "2.60", "2.240", "2.34",
                                                "17.6", "10", "+7.6"]  # fmt: skip


def hostile(url: str, folder: Path, reason: str) -> Page:
    """A report whose every foreign text is hostile."""
    cells = conditions(["amazon"], [20.0])
    good = record(cells[0], 0, 1000.0)
    rest = requests("amazon", 3, 1000.0, random.Random(0))  # noqa: S311 - any numbers will do
    load = replace(load_of(good), requests=(replace(rest[0], url=url), *rest[1:]))
    swap = Substitution(f"GET {url}", f"GET {reason}")
    good = replace(
        good, measured=replace(load, client_version=reason), replay=Replay(1, inexact=(swap,))
    )
    bad = replace(record(cells[1], 0, 900.0), outcome="failed", reason=reason, measured=None)
    environment = replace(ENVIRONMENT, facts={"note": reason, reason: "x"})
    asked = experiment(1, conditions=cells, title=reason, name=reason)
    write_reports(write_results(folder, [good, bad], asked, environment))
    return Page((folder / "report.html").read_text(encoding="utf-8"))


NASTY = ("</script><script>alert(1)</script>", "<!--<script>",
         "]]></style><img src=x onerror=alert(1)>", "'\"><svg onload=alert(1)>",
         "{{ 7 * 7 }}{% raw %}", "javascript:alert(1)",
         "\u202egnp.exe\u2028\x1b[31m\x00")  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of harmless text."""
    return hostile("http://a.test/", tmp_path_factory.mktemp("plain"), "reason")


@pytest.mark.thorough
@pytest.mark.slow
@settings(max_examples=40)
@given(
    urls=st.lists(st.sampled_from(NASTY) | st.text(max_size=30), min_size=1, max_size=4),
    reasons=st.lists(st.sampled_from(NASTY) | st.text(max_size=30), min_size=1, max_size=4),
)
def test_foreign_text_never_becomes_markup(
    plain: Page, tmp_path_factory: pytest.TempPathFactory, urls: list[str], reasons: list[str]
) -> None:
    url, reason = "".join(urls), "".join(reasons)
    page = hostile(url, tmp_path_factory.mktemp("hostile"), reason)
    shape = [tag for tag, _ in page.tags if tag not in ("pre", "dt", "dd")]
    assert shape == [tag for tag, _ in plain.tags if tag not in ("pre", "dt", "dd")]
    assert [sorted(a) for t, a in page.tags if t in ("script", "img", "svg")] == [
        sorted(a) for t, a in plain.tags if t in ("script", "img", "svg")
    ]
    assert page.scripts[-1] == plain.scripts[-1]
    data = json.loads(page.scripts[0])
    assert len(data["loads"]) == 1 and len(data["urls"]) >= 2
    assert not any("\x1b" in text or "\u202e" in text for text in (*page.texts, *data["urls"]))


def test_refuses_mixed_environments_and_writes_nothing(tmp_path: Path) -> None:
    cells = conditions(["amazon"], [20.0])
    records = [record(cells[0]), replace(record(cells[1]), environment="another")]
    write_results(tmp_path, records, experiment(1, conditions=cells))
    with pytest.raises(ConfigurationError, match=r"environment id: .*'another'"):
        write_reports(tmp_path)
    assert not any((tmp_path / name).exists() for name in FILES)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    (folder / "table.csv").mkdir()
    with pytest.raises(StorageError, match=r"table\.csv.*records are intact"):
        write_reports(folder)
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith("table.csv")) == [
        "table.csv"
    ]


def test_an_empty_run_has_a_report(tmp_path: Path) -> None:
    write_results(tmp_path, [], experiment(1))
    write_reports(tmp_path)
    assert (
        "0 of 24 loads are recorded as verified by packet capture"
        in (tmp_path / "report.html").read_text()
    )


def text_of(folder: Path) -> str:
    return " ".join(" ".join(Page((folder / "report.html").read_text()).texts).split())


def test_one_cell_has_a_report(tmp_path: Path) -> None:
    cells = conditions(["amazon"], [20.0], [False])
    write_reports(write_results(tmp_path, [record(cells[0])], experiment(1, conditions=cells)))
    assert "The load is recorded as verified by packet capture." in text_of(tmp_path)
    assert (tmp_path / "table.csv").read_text().count("\n") == 2


def test_a_setting_that_one_condition_alone_has(tmp_path: Path) -> None:
    plain, other = conditions(["amazon"], [20.0])
    routed = [replace(c, tcp=replace(c.tcp, route={"initcwnd": 20})) for c in (plain, other)]
    cells = (plain, other, *routed)
    write_reports(write_results(tmp_path, map(record, cells), experiment(1, conditions=cells)))
    page = Page((tmp_path / "report.html").read_text())
    assert {"20", MISSING} <= set(page.texts)


def test_a_run_without_a_proven_load_has_a_report_without_numbers(tmp_path: Path) -> None:
    cells = conditions(["amazon", "wsj"])
    records = [broken(record(c), "unproven") for c in cells]
    write_reports(write_results(tmp_path, records, experiment(1, conditions=cells)))
    source = (tmp_path / "report.html").read_text()
    assert "0 of 12 loads are recorded as verified by packet capture" in source
    assert 'class="figures"' not in source.partition('id="rebuilt"')[0]
    assert json.loads((tmp_path / "summary.json").read_text())["counts"] == {"unproven": 12}


def test_warm_ups_alone_are_no_result(tmp_path: Path) -> None:
    cells = conditions(["amazon"], [20.0])
    warm = []
    for one in map(record, cells):
        trial = replace(one.trial, warm_up=True)
        warm.append(replace(one, trial=trial, trial_id=trial.id))
    write_reports(write_results(tmp_path, warm, experiment(1, conditions=cells)))
    assert "0 of 2 loads are recorded as verified by packet capture" in text_of(tmp_path)
    assert "2 planned loads were not run" in text_of(tmp_path)


def test_records_without_har_files_have_a_report(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    shutil.rmtree(folder / "trials")
    write_reports(folder)
    assert "No load left a usable HAR file." in text_of(folder)
    assert "21 loads: load.har cannot be read: No such file or directory" in text_of(folder)


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    folder = write_sample(tmp_path)
    whole = (folder / "records.jsonl").read_text()
    (folder / "records.jsonl").write_text(whole[:-200])
    write_reports(folder)
    assert "19 of 24 loads are recorded as verified by packet capture" in text_of(folder)
    assert "2 planned loads were not run" in text_of(folder)


def test_long_tables_fold_and_offer_a_choice_of_page(tmp_path: Path) -> None:
    cells = conditions(["amazon", "wsj"], [float(rtt) for rtt in range(20, 62, 2)])
    records = [record(c) for c in cells]
    write_reports(write_results(tmp_path, records, experiment(1, conditions=cells)))
    source = (tmp_path / "report.html").read_text()
    result = source[source.index('id="result"') : source.index("</section>")]
    assert "show all 42 rows" in result
    assert re.findall("<option>(.*?)</option>", result) == ["amazon", "wsj"]
    assert result.count('<tr data-page="wsj"') == 21
    assert "nth-child(n+41)" in source
    assert "show all" not in (write_twelve(tmp_path / "short") / "report.html").read_text()


def write_twelve(folder: Path) -> Path:
    """A report with short tables only."""
    cells = conditions(["amazon"])
    write_reports(write_results(folder, map(record, cells), experiment(1, conditions=cells)))
    return folder


def test_what_was_rebuilt_is_in_the_report_and_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = Rebuilt(
        "Table 9 rebuilt",
        tables=(
            Grid("Times", ("page", "PLT, s"), (("a<b", 1.23456789), ("c", None)), "In seconds."),
        ),
        figures=(Figure("f", "A figure", plot.cdf([{"plt_ms": 1.0}], "plt_ms"), "Its caption."),),
        checks=(
            StatedCheck("Table 9, row 1", "improvement", "4 %", "4.1 %", "agrees"),
            StatedCheck("Table 9, row 2", "improvement", "9 %", "1 %", "differs", "Another page."),
            StatedCheck("Table 9, row 3", "improvement", "9 %", MISSING, "not measured"),
        ),
        files={"table_results.csv": "page,plt\na,1\n"},
    )
    monkeypatch.setattr(report, "rebuild", lambda results: built)
    folder = write_twelve(tmp_path)
    text = text_of(folder)
    assert "1 of 2 stated values that were measured agree; 1 was not measured here." in text
    assert "✓ agrees" in text and "△ differs Another page." in text
    assert f"Times page PLT, s a<b 1.2346 c {MISSING} In seconds." in text
    assert "A figure" in text and "Its caption." in text
    assert (folder / "table_results.csv").read_text() == "page,plt\na,1\n"
    assert "Why ours differ from the publication" in text


def test_a_page_of_a_thousand_loads_stays_small(tmp_path: Path) -> None:
    folder = write_sample(tmp_path, seeds=42)
    write_reports(folder)
    assert (folder / "report.html").stat().st_size < 4_000_000
    assert "96 of 1,005 loads are in this page" in text_of(folder)
