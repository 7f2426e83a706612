"""Traces in experiment files: names that are there, and what makes no sense without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.config import load_experiment
from testbed.experiment.options import Override
from testbed.model import Condition, Experiment
from testbed.runner.prepare import read_catalogue

LOAD = 'page = "wikipedia"\nclient = "graph"\n'


def load(folder: Path, text: str, *overrides: Override) -> Experiment:
    path = folder / "x.toml"
    path.write_text(LOAD + text)
    return load_experiment(path, read_catalogue(), overrides)


def test_a_file_of_ones_own_is_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "my.trace").write_text("1\n")
    mine = load(
        tmp_path, '[link]\ntrace_down = "my.trace"\n[sweep]\ntrace_up = ["", "lte-drive-up"]'
    )
    assert mine.traces == ("my.trace", "lte-drive-up")
    assert mine.trace_folder == str(tmp_path)
    of_the_tree = load(tmp_path, '[link]\ntrace_down = "starlink-down"\ntrace_phase = "seed"')
    assert (of_the_tree.traces, of_the_tree.trace_folder) == (("starlink-down",), None)
    assert of_the_tree.conditions[0].draws
    assert load(tmp_path, 'link.hop_up = "my.trace"').traces == ("my.trace",)


def test_without_a_trace_ids_are_what_they_were(tmp_path: Path) -> None:
    (condition,) = load(tmp_path, "").conditions_as(Condition)
    assert (condition.link.trace_down, condition.link.trace_up) == ("", "")
    assert load(tmp_path, "").traces == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[link]\ntrace_down = "lte"', "x.toml:4: link.trace_down: there is no trace 'lte'"),
        ('[link]\ntrace_up = "no.trace"', "link.trace_up: there is no file "),
        ('[sweep]\ntrace_up = ["lte-drive-up", "a"]', "sweep.trace_up: there is no trace 'a'"),
        ('[link]\ntrace_down = "../x.trace"', 'link.trace_down: "../x.trace" is not a'),
        ('[link]\ntrace_down = ".trace"', 'link.trace_down: ".trace" is not a'),
        ('[link]\ntrace_end = "once"', "x.toml:4: link.trace_end: there is no trace; set"),
        ('[sweep]\ntrace_phase = ["start", "seed"]', "sweep.trace_phase: there is no trace; set"),
        ('link.hop_up = "no.trace"', "link.hop_up: there is no file "),
        ('link.hop_up = "lte-drive-up"\nkernel.name = "host"', "link.hop_up: takes virtual time"),
        (
            'link.hop_down = "lte-drive-down"\ntraffic = "call"',
            "x.toml:3: link.hop_down: neighbours are not behind a last hop",
        ),
        (
            'link = { hop_down = "lte-drive-down", duplicate_pct = 1 }',
            "link.hop_down: a last hop has no duplicate_pct beside it; leave one of the two out",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text)
    assert says in str(refused.value)
