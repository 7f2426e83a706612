"""Experiment files of loads on a server: their knobs, and those of the other kind."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from testbed.experiment.config import load_experiment
from testbed.experiment.label import label, varying
from testbed.experiment.options import parse_override
from testbed.experiment.plan import plan_trials
from testbed.experiment.stopping import draws_nothing
from testbed.kinds import read_trial
from testbed.model import Condition, Experiment, LinkSpec, TcpSpec, Trial
from tests.experiment.test_config import MINIMAL, problems
from tests.experiment.test_config import load as load_page
from tests.hallway import CATALOGUE
from wings.server_loads.spec import ArrivalSpec, ServerLoad, ServerSpec

KIND = 'kind = "server_load"\n'


def load(folder: Path, text: str, *sets: str) -> Experiment:
    path = folder / "trial.toml"
    path.write_text(KIND + text)
    return load_experiment(path, CATALOGUE, [parse_override(text) for text in sets])


def test_without_a_knob_everything_has_its_default(tmp_path: Path) -> None:
    experiment = load(tmp_path, "")
    assert experiment.kind == "server_load"
    assert experiment.conditions == (ServerLoad(ServerSpec(), ArrivalSpec()),)
    assert experiment.pages == ()


def test_all_tables_and_a_sweep(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        "[server]\nlisten_backlog = 64\n[link]\nrtt_ms = 2\n[tcp]\ntfo = true\n"
        '[sweep]\nmechanism = ["default", "abort"]\nrate_per_s = [10, 20]\n',
    )
    assert experiment.conditions[1] == ServerLoad(
        ServerSpec(listen_backlog=64),
        ArrivalSpec(rate_per_s=20),
        LinkSpec(rtt_ms=2.0),
        TcpSpec(tfo=True),
    )
    assert [c.server.mechanism for c in experiment.conditions if isinstance(c, ServerLoad)] == [
        "default", "default", "abort", "abort",
    ]  # fmt: skip
    names = varying(experiment.conditions)
    assert label(plan_trials(experiment)[1], names) == "mechanism=default rate_per_s=20"


def test_a_knob_may_be_set_on_the_command_line(tmp_path: Path) -> None:
    (condition,) = load(tmp_path, "", "listen_backlog=64").conditions
    assert isinstance(condition, ServerLoad)
    assert condition.server.listen_backlog == 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KIND + 'page = "wsj"\n',
         '/trial.toml:2: page: trials of the kind server_load have no such knob; leave it out, or '
         'set kind = "page_load"'),
        (KIND + '[sweep]\ntls_version = ["1.3"]\n',
         '/trial.toml:3: sweep.tls_version: trials of the kind server_load have no such knob; '
         'leave it out, or set kind = "page_load"'),
        ('page = "wsj"\nclient = "graph"\n[server]\nprice = 2\n',
         '/trial.toml:4: server.price: trials of the kind page_load have no such knob; leave it '
         'out, or set kind = "server_load"'),
        ('page = "wsj"\nclient = "graph"\n[sweep]\nmechanism = ["abort"]\n',
         '/trial.toml:4: sweep.mechanism: trials of the kind page_load have no such knob; leave it '
         'out, or set kind = "server_load"'),
        (KIND + '[arrivals]\nloop = "closed"\nrate_per_s = 5\n',
         '/trial.toml:4: arrivals.rate_per_s: has no meaning where loop = "closed"; leave '
         'it out, or set loop = "open"'),
        (KIND + "[sweep]\nclients = [1, 2]\n",
         '/trial.toml:3: sweep.clients: has no meaning where loop = "open"; leave it '
         'out, or set loop = "closed"'),
        ('kind = "serverload"\n',
         '/trial.toml:1: kind: "serverload" is not "page_load" or "scenario" or "server_load" or '
         "\"command\" (did you mean 'server_load'?)"),
        (KIND + '[server]\nmechanism = "aborts"\n',
         '/trial.toml:3: server.mechanism: "aborts" is not "default" or "abort" or "reserv"'),
        (KIND + "[server]\nlisten_backlog = 2000\n",
         "/trial.toml:3: server.listen_backlog: a SYN backlog of 1024 is shorter than a listen "
         "backlog of 2000, and the kernel has one for both; set syn_backlog to 2000 or more"),
        (KIND + "[arrivals]\nbase_rate_per_s = 5\n",
         "/trial.toml:3: arrivals.base_rate_per_s: means nothing without bursts; set burst_s"),
        (KIND + "[arrivals]\nburst_s = 5\nevery_s = 5\n",
         "/trial.toml:3: arrivals.burst_s: 5 s are no part of every_s = 5; set it longer"),
        (KIND + "[arrivals]\nburst_s = 1\nbase_rate_per_s = 2000\n",
         "/trial.toml:3: arrivals.burst_s: between bursts base_rate_per_s = 2000 come, in them "
         "fewer, rate_per_s = 1000"),
        (KIND + '[arrivals]\nloop = "closed"\nclients = 2\ncool_down_s = 5\n',
         '/trial.toml:5: arrivals.cool_down_s: has no meaning where loop = "closed"'),
        (KIND + '[arrivals]\nsyn_timeouts_s = "3 7"\n',
         '/trial.toml:3: arrivals.syn_timeouts_s: no kernel can follow "3 7"; give times of 1 s'),
        (KIND + '[sweep]\nsyn_timeouts_s = ["3 6", "6 3"]\n',
         '/trial.toml:3: sweep.syn_timeouts_s: no kernel can follow "6 3"'),
        (KIND + '[arrivals]\nsyn_timeouts_s = "3 6"\nsyn_retries = 2\n',
         "/trial.toml:4: arrivals.syn_retries: syn_timeouts_s says it; leave one of the two out"),
        (KIND + '[arrivals]\nsyn_timeouts_s = "3, 6"\n',
         '/trial.toml:3: arrivals.syn_timeouts_s: "3, 6" is not up to 16 seconds, such as'),
        (KIND + "[arrivals]\nrate_per_s = 0\n",
         "/trial.toml:3: arrivals.rate_per_s: 0 is not a whole number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_place_and_remedy(
    tmp_path: Path, text: str, expected: str
) -> None:
    (problem, *_) = problems(tmp_path, text)
    assert problem.startswith(expected)


def test_a_page_load_still_needs_a_page(tmp_path: Path) -> None:
    assert any("page: missing" in problem for problem in problems(tmp_path, "repetitions = 1\n"))


def test_only_poisson_arrivals_draw(tmp_path: Path) -> None:
    assert draws_nothing(load(tmp_path, ""))
    assert not draws_nothing(load(tmp_path, '[arrivals]\nspacing = "poisson"\n'))
    assert draws_nothing(load(tmp_path, '[arrivals]\nloop = "closed"\n'))


def test_an_id_is_that_of_what_differs_from_the_defaults(tmp_path: Path) -> None:
    (trial,) = plan_trials(load(tmp_path, ""))
    assert trial.id == "74b6bb31b750103b"
    (other,) = plan_trials(load(tmp_path, "[server]\nprice = 2\n"))
    assert other.id != trial.id
    assert Trial(ServerLoad(), 0, 7, "virtual", "7.3").id == "6ff55e5d992c1b33"
    (same,) = plan_trials(load(tmp_path, "[server]\nprice = 1\n"))
    assert same.id == trial.id


def test_a_trial_comes_back_from_its_file(tmp_path: Path) -> None:
    (trial,) = plan_trials(load(tmp_path, "[server]\nprice = 2\n"))
    assert read_trial(asdict(trial)) == trial
    assert trial.condition_as(ServerLoad).server.price == 2.0
    assert trial.page is None
    with pytest.raises(TypeError, match="a trial of the kind server_load is no Condition"):
        _ = trial.condition_as(Condition)


@pytest.mark.parametrize(
    "place", ['[server]\nprogram = "nginx"\n', '[sweep]\nprogram = ["nginx"]\n']
)
def test_nginx_cannot_pay_in_virtual_time(tmp_path: Path, place: str) -> None:
    (problem,) = problems(tmp_path, KIND + place)
    assert "program: nginx cannot pay for its work in virtual time" in problem
    assert 'set kernel.name = "host", or program = "event-server", or price = 0' in problem


def test_nginx_serves_in_real_time_and_for_nothing(tmp_path: Path) -> None:
    server = '[server]\nprogram = "nginx"\n'
    both = replace(CATALOGUE, kernels={**CATALOGUE.kernels, "host": ("6.18",)})
    path = tmp_path / "host.toml"
    path.write_text(KIND + server + '[kernel]\nname = "host"\n')
    assert load_experiment(path, both).conditions
    assert load(tmp_path, server + "price = 0\n").conditions


def test_conditions_are_left_out_of_a_sweep(tmp_path: Path) -> None:
    text = (
        'leave_out = ["mechanism=abort,retries_refused=2", "mechanism=no-syn-drop"]\n'
        '[sweep]\nmechanism = ["abort", "abort rst-syn", "no-syn-drop"]\n'
        "retries_refused = [2, 0]\n"
    )
    experiment = load(tmp_path, text)
    names = varying(experiment.conditions)
    assert [label(trial, names) for trial in plan_trials(experiment)] == [
        "mechanism=abort retries_refused=0",
        "mechanism=abort rst-syn retries_refused=2",
        "mechanism=abort rst-syn retries_refused=0",
    ]
    # Another sweep of the same file may have none of them.
    assert len(load(tmp_path, text, "mechanism=default").conditions) == 2


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("mechansim=abort", "trial.toml:2: leave_out mechansim=abort: no knob is named 'mechansim'"
         " (did you mean 'mechanism'?)"),
        ("abort", "trial.toml:2: leave_out abort: write it as key=value, such as page=amazon"),
        ("mechanism=default", "trial.toml:2: leave_out: no condition is left; take a text away"),
    ],
)  # fmt: skip
def test_what_cannot_be_left_out_is_named(tmp_path: Path, left: str, said: str) -> None:
    (problem,) = problems(tmp_path, f'{KIND}leave_out = ["{left}"]\n')
    assert f"/{said}" in problem


def test_settings_of_tcp_may_be_swept(tmp_path: Path) -> None:
    axis = "tcp.sysctl.tcp_rto_min_us=[200000, 20000]"
    experiment = load(tmp_path, "", axis, "sysctl.server.tcp_syn_retries=3")
    loads = [each for each in experiment.conditions if isinstance(each, ServerLoad)]
    assert [each.tcp.sysctl["tcp_rto_min_us"] for each in loads] == [200_000, 20_000]


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("sysctl.tcp_syncookies=1", "use server.syncookies"),
        ("sysctl.server.core.somaxconn=1", "use server.listen_backlog"),
        ("sysctl.tcp_syn_retries=1", "use arrivals.syn_retries"),
        ("sysctl.client.tcp_tw_reuse=0", "set it at the server alone"),
    ],
)
def test_what_a_load_sets_itself(tmp_path: Path, option: str, problem: str) -> None:
    (found,) = problems(tmp_path, KIND, option)
    assert problem in found
    assert load_page(tmp_path, MINIMAL, option).conditions
