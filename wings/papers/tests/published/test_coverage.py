"""Coverage of the sources: every item is there, and what shows it is there by its name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from analysis.records.results import read_results
from testbed.base.errors import ConfigurationError
from testbed.base.places import CONFIGS, ROOT
from wings.papers.publications import find, rebuild_as
from wings.papers.published.coverage import (
    CANNOT_BE,
    COVERAGE,
    SOURCES,
    WORKS,
    find_evidence,
    read_coverage,
    render_coverage,
)

ITEMS = read_coverage()
ANALYSIS = ROOT / "analysis"
HELD = {path.stem: tomllib.loads(path.read_text()).get("reference")
        for path in CONFIGS.glob("*.toml")}  # fmt: skip
KEPT = {reference: kept for reference in sorted(filter(None, HELD.values()))
        if (kept := [folder for name, held in HELD.items() if held == reference
                     for part in ("baselines", "samples")
                     if (folder := ANALYSIS / part / name).is_dir()])}  # fmt: skip
"""The committed results that are held to each publication."""
LINE = "1,tum,4,An item,works,,scenario cached-cookie\n"
HEAD = "id,source,section,item,state,note,evidence\n"


def problems(folder: Path, *lines: str) -> list[str]:
    path = folder / "x.csv"
    path.write_text(HEAD + "".join(lines))
    with pytest.raises(ConfigurationError) as caught:
        read_coverage(path)
    return caught.value.problems


def test_each_item_of_each_source_has_its_row() -> None:
    counts = [sum(item.source == source for item in ITEMS) for source in SOURCES]
    assert dict(zip(SOURCES, counts, strict=True)) == {
        "fastopen": 71, "overload": 32, "cs244": 14, "slides": 7, "tum": 21, "purpose": 13,
    }  # fmt: skip
    assert len(ITEMS) == 158
    assert len({(item.source, item.section, item.text) for item in ITEMS}) == 158


def test_the_page_has_a_line_for_each_item_and_counts_them() -> None:
    page = render_coverage()
    rows = [line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [int(row.split()[1]) for row in rows] == list(range(1, 159))
    cannot = sum("*cannot be*, because " in row for row in rows)
    assert f", {cannot} cannot be" in page.splitlines()[0]
    assert cannot == sum(item.state == CANNOT_BE for item in ITEMS)


def test_what_a_claim_shows_is_measured_by_an_experiment() -> None:
    named = {each.file.stem for item in ITEMS for each in item.evidence if each.kind == "claim"}
    assert named
    assert named <= set(HELD.values())


def is_measured(folder: Path, begin: str) -> bool:
    """Whether committed results are held to a claim; its publication states nothing else here."""
    results = read_results(folder)
    known = find(results)
    assert known is not None
    claims = [claim for claim in known.claims if (claim.quantity or claim.says).startswith(begin)]
    stated = tuple(row for claim in claims for row in known.select(claim.quantity))
    rebuilt = rebuild_as(results, known.model_copy(update={"claims": claims, "stated": stated}))
    return rebuilt is not None and any(one.agreement != "not measured" for one in rebuilt.checks)


def claims_of(publication: str) -> set[str]:
    """How the claims of a publication begin that show an item."""
    shown = {each.name for item in ITEMS if item.state == WORKS for each in item.evidence
             if each.kind == "claim"}  # fmt: skip
    return {name.partition(": ")[2] for name in shown if name.startswith(f"{publication}: ")}


def test_a_claim_that_no_load_is_held_to_is_seen() -> None:
    folder = ANALYSIS / "samples" / "tum-receive-window"
    assert is_measured(folder, "A receiver whose window")
    assert not is_measured(folder, "No such claim")


@pytest.mark.thorough(but="^tum-receive-window$")
@pytest.mark.parametrize("publication", KEPT)
def test_what_works_by_a_claim_is_measured_in_committed_results(publication: str) -> None:
    begun = claims_of(publication)
    kept = KEPT[publication]
    assert [one for one in begun if not any(is_measured(at, one) for at in kept)] == []


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        ("scenario", "cached-cookie", "cached-cookies"),
        ("config", "tum-website", "tum-webcite"),
        ("page", "amazon", "amazone"),
        ("file", "docs/images", "docs/pictures"),
        ("check", "fast open", "fast opens"),
        ("knob", "rtt_ms", "rtt"),
        ("claim", "tum-initcwnd: window_gain", "tum-initcwnd: window_gains"),
        ("claim", "tum-initcwnd: In a network with", "tum-website: In a network with"),
        ("sentence", "tum-initcwnd: Dukkipati", "tum-initcwmd: Dukkipati"),
        ("difference", "tum-website: The site is", "tum-website"),
        ("test", "tests/test_links_documentation.py::test_each", "tests/none.py::test_each"),
    ],
)
def test_evidence_is_found_by_its_name_and_nothing_else_is(
    kind: str, name: str, wrong: str, tmp_path: Path
) -> None:
    if kind == "test":
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "test_links_documentation.py").write_text("def test_each() -> None:")
        assert find_evidence(kind, name, tmp_path) == Path("tests/test_links_documentation.py")
        assert find_evidence(kind, f"{name}_of_them", tmp_path) is None
    else:
        assert find_evidence(kind, name) is not None
    assert find_evidence(kind, wrong) is None
    assert find_evidence("rumour", name) is None


def test_all_problems_of_the_items_at_once(tmp_path: Path) -> None:
    assert problems(
        tmp_path,
        LINE,
        "3,rfc,4,Another,works,,\n",
        "3,tum,4,A third,cannot be,,scenario cached-cookies\n",
        "4,tum,4,A fourth,missing,,\n",
        "5,tum,4,A fifth,partly,,\n",
    ) == [
        "x.csv:3: id: '3' stands where 2 is next",
        "x.csv:3: source: 'rfc' is none of fastopen, overload, cs244, slides, tum, purpose",
        "x.csv:3: evidence: nothing shows that it works",
        "x.csv:4: note: say why it cannot be",
        "x.csv:4: no scenario is 'cached-cookies'; correct the name, or add it",
        "x.csv:5: note: say why it is missing",
        "x.csv:6: state: 'partly' is none of works, cannot be, missing",
    ]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,item\n1,An item\n")
    with pytest.raises(ConfigurationError, match="the columns are id,source,section"):
        read_coverage(path)
    assert COVERAGE.read_text(encoding="utf-8").startswith(HEAD)
