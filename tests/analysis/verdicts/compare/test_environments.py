"""Unequal environments are named, and other pages refused unless they are under test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions
from analysis.verdicts.compare.folders import compare_results
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import write_lanes
from testbed.results.environment import Environment
from tests.analysis.sample import ENVIRONMENT
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    SECOND,
    changed,
    made,
    write_records_of,
    write_times,
)

TIMES = {FIRST: [1000.0], SECOND: [2000.0]}
OTHER = changed(package__nginx="1.24.0-1", code__testbed="cd" * 32)


def problems_of(base: Path, new: Path, *across: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        compare_results(base, new, CompareOptions(across))
    return refused.value.problems


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_times(tmp_path / "base", TIMES)


def parts_of(base: Path, new: Path) -> list[str]:
    return [part.name for part in compare_results(base, new).parts]


def test_what_differs_is_named_and_what_can_move_loads_comes_first(
    tmp_path: Path, base: Path
) -> None:
    other = changed(package__nginx="1.24.0-1", code__testbed="cd" * 32, code__bundle="1" * 64,
                    kernel__build="2" * 64, root="3" * 64, file__a="4" * 64)  # fmt: skip
    found = compare_results(base, write_times(tmp_path / "new", TIMES, environment=other))
    assert [part.name for part in found.parts] == ["root", "kernel.build", "code.bundle",
                                                   "code.testbed", "package.nginx"]  # fmt: skip
    assert found.verdict == "same" and found.drawn
    new = write_times(tmp_path / "bare", TIMES, environment=OTHER)
    for across in ((), ("code", "package.nginx"), ("all",)):
        found = compare_results(base, new, CompareOptions(across))
        assert [part.name for part in found.parts] == ["code.testbed", "package.nginx"]


def test_programs_that_only_another_client_runs_are_no_difference(
    tmp_path: Path, base: Path
) -> None:
    parts = {name: value for name, value in ENVIRONMENT.parts.items() if "node" not in name}
    parts["package.wget2"] = "2.0"
    environment = Environment(parts, ENVIRONMENT.pages)
    fetched = replace(FIRST, client="wget2")
    new = write_times(tmp_path / "new", {FIRST: [1000.0], fetched: [1.0]}, environment=environment)
    assert parts_of(base, new) == []
    same_client = write_times(tmp_path / "same", TIMES, environment=environment)
    assert parts_of(base, same_client) == ["package.wget2", "program.node"]


def test_a_root_stands_for_the_programs_of_its_guests(tmp_path: Path, base: Path) -> None:
    programs = ("package.", "program.", "file.")
    parts = {n: value for n, value in ENVIRONMENT.parts.items() if not n.startswith(programs)}
    assert parts != ENVIRONMENT.parts
    roots = [Environment(parts | {"root": digest * 64}, ENVIRONMENT.pages) for digest in "12"]
    first, second = (
        write_times(tmp_path / root.parts["root"], TIMES, environment=root) for root in roots
    )
    assert parts_of(base, second) == parts_of(first, second) == ["root"]


def test_pages_that_both_have_must_be_the_same(tmp_path: Path, base: Path) -> None:
    pages = {**ENVIRONMENT.pages, "amazon": "99" * 32}
    pages.pop("wikipedia")
    new = write_times(tmp_path / "new", TIMES,
                      environment=Environment(ENVIRONMENT.parts, pages))  # fmt: skip
    (problem,) = problems_of(base, new)
    assert "pages.amazon" in problem and "--across pages.amazon" in problem
    assert compare_results(base, new, CompareOptions(("pages",))).verdict == "same"


def test_another_version_of_the_kernel_is_named(tmp_path: Path, base: Path) -> None:
    records = []
    for condition, (plt_ms,) in TIMES.items():
        one = made(condition, 0, plt_ms)
        trial = replace(one.trial, kernel_version="6.1")
        records.append(replace(one, trial=trial, trial_id=trial.id))
    older = write_records_of(tmp_path / "older", records, TIMES)
    found = compare_results(base, older)
    assert found.verdict == "same" and not found.drawn
    assert "kernel.version" in [part.name for part in found.parts]


def test_a_name_that_is_nothing_is_refused(base: Path) -> None:
    (problem,) = problems_of(base, base, "initcwnd_segment")
    assert "--across initcwnd_segment" in problem and "did you mean 'initcwnd_segments'?" in problem
    assert problems_of(base, base, "xyzzy", "plugh")[1].startswith("--across plugh")


def test_folders_that_mix_are_refused(tmp_path: Path, base: Path) -> None:
    ours = made(FIRST, 0, 1000.0)
    theirs = replace(made(FIRST, 1, 1000.0), environment="feedfeedfeedfeed")
    mixed = write_records_of(tmp_path / "mixed", [ours, theirs], [FIRST])
    assert any("environment id" in problem for problem in problems_of(base, mixed, "all"))
    strange = write_records_of(tmp_path / "strange", [theirs], [FIRST])
    (problem,) = problems_of(base, strange, "all")
    assert "its records come from environment feedfeedfeedfeed" in problem


def test_lanes_and_places_without_results_are_refused(tmp_path: Path, base: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such folder"):
        compare_results(base, tmp_path / "nowhere")
    write_times(tmp_path / "lanes" / "7.3", TIMES)
    write_times(tmp_path / "lanes" / "6.1", TIMES)
    write_lanes(tmp_path / "lanes", ["7.3", "6.1"])
    with pytest.raises(ConfigurationError, match=r"7\.3"):
        compare_results(base, tmp_path / "lanes")


@pytest.mark.parametrize(("options", "told"), [
    (CompareOptions(alpha=0.0), "alpha 0"),
    (CompareOptions(alpha=float("nan")), "alpha nan"),
    (CompareOptions(min_effect_pct=-1.0), "minimum effect of -1 %"),
])  # fmt: skip
def test_numbers_that_make_no_sense(base: Path, options: CompareOptions, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        compare_results(base, base, options)
