"""The committed results are measured anew as one, and their drawings are in the documents."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from analysis.readme import list_drawings
from testbed.base import proc
from testbed.base.places import ROOT

STUB = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
[ "$2" != "$FAILING" ]
"""
"""Notes how it was called, and fails where its second word is that one."""


def make_results(tree: Path, failing: str = "none") -> tuple[int, list[list[str]]]:
    """The exit status of `make results`, and how the programs that it calls were called."""
    (tree / "analysis").mkdir(parents=True)
    (tree / "bootstrap").mkdir()
    for name in ("Makefile", "analysis/committed-results.txt"):
        shutil.copy(ROOT / name, tree / name)
    for program in (tree / "run.sh", tree / "bootstrap" / "develop.sh"):
        program.write_text(STUB)
        program.chmod(0o755)
    calls = tree / "calls"
    made = proc.run(
        ("env", f"CALLS={calls}", f"FAILING={failing}", "make", "-C", str(tree), "results",
         "REASON=a reason to try"),
        check=False,
    )  # fmt: skip
    return made.returncode, [line.split(" ") for line in calls.read_text().splitlines()]


def test_all_is_measured_before_any_of_it_is_kept(tmp_path: Path) -> None:
    """What is kept changes the work tree, and results name one that is changed."""
    status, calls = make_results(tmp_path / "tree")
    assert status == 0
    verbs = [words[0] for words in calls]
    measured, kept = verbs.count("run"), verbs.count("baseline")
    assert verbs == ["run"] * measured + ["baseline"] * kept + ["--without-kernel"]
    assert calls[-1][-1] == "analysis.readme"
    folders = [words[words.index("--to") + 1] for words in calls if words[0] == "baseline"]
    committed = [
        f"analysis/{kind}/{manifest.parent.name}"
        for kind in ("baselines", "samples")
        for manifest in (ROOT / "analysis" / kind).glob("*/manifest.json")
    ]
    assert sorted(folders) == sorted(committed)
    assert measured == kept == len(folders)
    assert all(words[-4:] == ["a", "reason", "to", "try"] for words in calls[measured:-1])
    (first,) = (words for words in calls if "analysis/baselines/nightly" in words)
    assert first[:3] == ["baseline", "update", calls[1][calls[1].index("-o") + 1]]


def test_nothing_is_kept_if_a_measurement_fails(tmp_path: Path) -> None:
    status, calls = make_results(tmp_path / "tree", "configs/cs244-reuse.toml")
    assert status != 0
    assert calls[-1][:2] == ["run", "configs/cs244-reuse.toml"]
    assert "baseline" not in {words[0] for words in calls}


def test_results_are_not_measured_without_a_reason() -> None:
    refused = proc.run(("make", "--no-print-directory", "-C", str(ROOT), "results"), check=False)
    assert refused.returncode != 0
    assert "REASON=" in refused.stderr


@pytest.mark.parametrize("path", list_drawings(), ids=lambda path: path.stem)
def test_the_drawings_of_the_documents_are_those_of_the_samples(path: Path) -> None:
    assert path.read_text("utf-8") == list_drawings()[path](), "run `make readme`"
