"""The verb ``budgets``: what is kept, what is not, and what is no budget."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from firstflight.cli.main import main
from testbed.base import places
from tests.hallway import make_services

SAMPLES = places.ROOT / "analysis" / "samples"
WEBSITE = SAMPLES / "tum-website"


def run(base: Path, *words: str, results: Path = WEBSITE) -> int:
    return main(["budgets", str(results), *words], make_services(base))


def test_budgets_that_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "plt_ms<=2000", "plt_ms >= 1800 rtt_ms=200,tfo=false,tfo=true,"
               "initcwnd_segments=4,page=tum-website", "--annotate", "x.toml") == 1  # fmt: skip
    said = capsys.readouterr()
    assert said.out.count("\nkept  ") + said.out.startswith("kept  ") == 21
    assert said.out.count("NOT KEPT  ") == 1  # with Fast Open it is faster than that
    assert "page load time: 1,706.4 ms, 5.2 % under 1,800 ms" in said.out
    assert said.err.count("::error file=x.toml,line=1,title=RTT 200 ms%2C fast open on") == 1
    assert run(tmp_path, "plt_ms <= 2000", "--annotate", "x.toml") == 0
    assert "::" not in capsys.readouterr().err


def test_documents_of_budgets(tmp_path: Path) -> None:
    junit, markdown = tmp_path / "budgets.xml", tmp_path / "budgets.md"
    words = ("--junit", str(junit), "--markdown", str(markdown))
    assert run(tmp_path, "plt_ms <= 1900", *words) == 1
    (suite,) = ElementTree.parse(junit).getroot()  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("20", "1", "0")
    assert markdown.read_text().startswith("### :x: 1 of 20 budgets not kept\n")
    assert markdown.read_text().count("\n| RTT") == 1
    assert run(tmp_path, "plt_ms <= 1915", *words) == 0
    assert markdown.read_text().startswith("### :white_check_mark: All budgets kept\n")


def test_a_cell_that_is_not_proven_keeps_to_no_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    shutil.copytree(WEBSITE, results)
    records = results / "records.jsonl"
    lines = records.read_text().splitlines()
    (results / "records.jsonl").write_text("".join(f"{line}\n" for line in lines[1:]))
    lost = json.loads(lines[0])["trial"]["condition"]
    only = f"rtt_ms={lost['link']['rtt_ms']:g},tfo={str(lost['tcp']['tfo']).lower()}"
    assert run(tmp_path, f"plt_ms <= 9000 {only}", results=results) == 1
    assert "(not measured: not run)" in capsys.readouterr().out
    assert run(tmp_path, "fcp_ms <= 9000") == 1
    assert "(not measured: its loads have no first contentful paint)" in capsys.readouterr().out


def test_all_that_is_no_budget_is_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "plt_ms < 3", "plt <= 3", "plt_ms <= 3 page", "plt_ms <= -1") == 2
    said = capsys.readouterr().err
    assert said.count("write it as METRIC <= NUMBER") == 3
    assert "budget 'plt <= 3': no load is measured by it (did you mean 'plt_ms'?)" in said
    assert run(tmp_path, "plt_ms <= 3 rt_ms=20", "plt_ms <= 3 rtt_ms=21", "failed_pct <= 3") == 2
    said = capsys.readouterr().err
    assert "budget plt_ms <= 3 rt_ms=20: no cell has rt_ms; cells differ in rtt_ms, " in said
    assert "budget plt_ms <= 3 rtt_ms=21: no cell of " in said
    assert "budget failed_pct <= 3: trials of the kind page_load are not measured by it" in said
    assert run(tmp_path, "plt_ms <= 3", results=SAMPLES / "overload-segments") == 2
    assert "budget plt_ms <= 3: server_load has no plt_ms" in capsys.readouterr().err


def test_other_kinds_have_budgets_too(tmp_path: Path) -> None:
    assert run(tmp_path, "failed_checks <= 0", results=SAMPLES / "scenarios") == 0
