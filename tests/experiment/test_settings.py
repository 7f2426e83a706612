"""Settings of TCP in experiment files: axes, labels, choices, and every mistake in plain words."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.config import load_experiment
from testbed.experiment.label import label, varying
from testbed.experiment.options import parse_override, select
from testbed.experiment.plan import plan_trials
from testbed.experiment.recheck import check_experiment
from testbed.model import Condition, Experiment, TcpSpec
from testbed.results.environment import Environment
from testbed.results.manifest import load_manifest, make_manifest, write_manifest
from testbed.runner.prepare import read_catalogue
from tests.experiment.test_config import MINIMAL, load, problems
from tests.hallway import CATALOGUE

AXIS = "sysctl.tcp_rto_min_us"
SWEEP = f"tcp.{AXIS}=[200000, 20000]"


def tcp(experiment: Experiment) -> list[TcpSpec]:
    return [spec.tcp for spec in experiment.conditions if isinstance(spec, Condition)]


def test_every_way_to_write_a_name(tmp_path: Path) -> None:
    written = """
        [tcp.sysctl]
        tcp_sack = 0
        net.ipv4.tcp_dsack = 0
        "net.ipv4.tcp_frto" = 0
        core.somaxconn = 7
        tcp_rmem = "4096  131072\\t6291456"
        [tcp.sysctl.client]
        net.core.optmem_max = 70000
        [tcp.sysctl.server]
        tcp_timestamps = "0"
        [tcp.route]
        quickack = 1
        [tcp.route.client]
        initcwnd = 20
        [tcp.route.server]
        congctl = "reno"
    """
    (found,) = tcp(load(tmp_path, MINIMAL + written))
    assert found.sysctl == {
        "tcp_sack": 0,
        "tcp_dsack": 0,
        "tcp_frto": 0,
        "core.somaxconn": 7,
        "tcp_rmem": "4096 131072 6291456",
        "client.core.optmem_max": 70000,
        "server.tcp_timestamps": 0,
    }
    assert found.route == {"quickack": 1, "client.initcwnd": 20, "server.congctl": "reno"}


@pytest.mark.parametrize(
    "key", ["tcp.sysctl", "sysctl", "sweep.sysctl", "tcp.sysctl.net.ipv4", "sysctl.net.ipv4"]
)
def test_a_list_on_the_command_line_is_an_axis(tmp_path: Path, key: str) -> None:
    experiment = load(tmp_path, MINIMAL, f"{key}.tcp_rto_min_us=[200000, 20000]")
    assert [one.sysctl for one in tcp(experiment)] == [
        {"tcp_rto_min_us": 200_000},
        {"tcp_rto_min_us": 20_000},
    ]


def test_axes_vary_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = f"{MINIMAL}[sweep]\nsysctl.tcp_sack = [1, 0]\nrtt_ms = [20, 100]\n"
    experiment = load(tmp_path, text, "route.server.quickack=[0, 1]", "tcp.sysctl.tcp_dsack=0")
    names = ("sysctl.tcp_sack", "rtt_ms", "route.server.quickack")
    assert set(varying(experiment.conditions)) == {"page", *names}
    labels = [label(trial, names) for trial in plan_trials(experiment)]
    assert labels == [
        f"sysctl.tcp_sack={sack} rtt_ms={rtt} route.server.quickack={quick}"
        for sack in (1, 0) for rtt in (20, 100) for quick in (0, 1)
    ]  # fmt: skip
    assert {one.sysctl["tcp_dsack"] for one in tcp(experiment)} == {0}


def test_conditions_are_chosen_by_a_setting(tmp_path: Path) -> None:
    experiment = load(tmp_path, MINIMAL, SWEEP, "tfo=[true, false]")
    names = ("sysctl.net.ipv4.tcp_rto_min_us", "net.ipv4.tcp_rto_min_us", "tcp_rto_min_us")
    for key in (AXIS, f"tcp.{AXIS}", *names):
        (found,) = tcp(select(experiment, f"{key}=20000,tfo=true"))
        assert found == TcpSpec(tfo=True, sysctl={"tcp_rto_min_us": 20_000})
    with pytest.raises(ConfigurationError, match=f"{AXIS} is one of 200000, 20000"):
        select(experiment, f"{AXIS}=7")
    with pytest.raises(ConfigurationError, match=r"no knob is named 'sysctl\.tcp_sack'"):
        select(experiment, "sysctl.tcp_sack=7")
    left = load(tmp_path, f'leave_out = ["{AXIS}=20000"]\n{MINIMAL}', SWEEP)
    assert len(left.conditions) == 1
    rmem = load(tmp_path, MINIMAL, 'sysctl.tcp_rmem=["4096 8192 16384", "4096 8192 32768"]')
    assert len(select(rmem, "sysctl.tcp_rmem=4096 8192 32768").conditions) == 1


def test_an_option_takes_the_place_of_what_the_file_has(tmp_path: Path) -> None:
    text = (
        f"{MINIMAL}[sweep.sysctl]\nnet.ipv4.tcp_sack = [1, 0]\n[tcp.sysctl.client]\ntcp_dsack = 0\n"
    )
    experiment = load(tmp_path, text, "sysctl.tcp_sack=0", "sysctl.client.tcp_dsack=[0, 1]")
    assert [one.sysctl for one in tcp(experiment)] == [
        {"tcp_sack": 0, "client.tcp_dsack": value} for value in (0, 1)
    ]
    (last,) = tcp(load(tmp_path, text, SWEEP, f"{AXIS}=7", "tcp.sysctl.tcp_sack=4096 1 2"))
    assert last.sysctl == {"tcp_sack": "4096 1 2", "client.tcp_dsack": 0, "tcp_rto_min_us": 7}


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("sysctl.tcp_fastopen=1", "another knob sets it; use tcp.tfo and tcp.cookies"),
        ("sysctl.client.tcp_fastopen_key=1", "another knob sets it; use tcp.tfo and tcp.cookies"),
        ("sysctl.tcp_congestion_control=reno", "use tcp.congestion_control, or tcp.route.END."),
        ("sysctl.tcp_allowed_congestion_control=reno", "it is the whole machine's"),
        ("sysctl.tcp_accept_limit=1", "use server.mechanism, of a load on a server"),
        ("sysctl.net.ipv4.conf.all.rp_filter=1", "'conf.all.rp_filter' names no sysctl directly"),
        ("sysctl.net.ipv6.bindv6only=1", "'net.ipv6.bindv6only' names no sysctl directly"),
        ("sysctl.kernel.panic=1", "'kernel.panic' names no sysctl directly"),
        ("sysctl.a/../../b=1", "'a/../../b' names no sysctl directly"),
        ("sysctl.=1", "'' names no sysctl directly"),
        ("sysctl.tcp_sack=true", "True is not a whole number, or a text of printable words"),
        ("sysctl.tcp_sack=0.5", "0.5 is not a whole number, or a text of printable words"),
        (f"sysctl.tcp_sack=0x{'f' * 5000}", "this int is not a whole number"),
        ("sysctl.tcp_sack=[]", "this is not a list of one or more values"),
        ('sysctl.tcp_sack=[1, "1"]', "1 is in the list twice"),
        ("tcp.sysctl=5", "not a table; write it as [tcp.sysctl]"),
        ("sysctl=[{}]", "not a table; write it as [sweep.sysctl]"),
        ("route.mtu=1", "routes have no such attribute here; allowed: initcwnd, initrwnd"),
        ("route.server.initrwmd=1", "(did you mean 'initrwnd'?)"),
        ("route.quickack=2", "not a whole number from 0 to 1"),
        ("route.client.rto_min_ms=[20, 0.5]", "0.5 is not a whole number from 1 to 120000"),
        ("route.initcwnd=3", "another knob sets the server's; use tcp.initcwnd_segments"),
        ("route.server.initcwnd=3", "another knob sets the server's; use tcp.initcwnd_segments"),
        ("route.congctl=reno", "another knob sets it at both ends; use tcp.congestion_control"),
        ("route.client.congctl=no such", "not the kernel's name of an algorithm"),
    ],
)
def test_what_no_trial_could_do(tmp_path: Path, option: str, problem: str) -> None:
    (found,) = problems(tmp_path, MINIMAL, option)
    assert found.startswith(f"--set {option}: ")
    assert problem in found


def test_scenarios_have_their_own(tmp_path: Path) -> None:
    catalogue = read_catalogue()
    name = sorted(catalogue.libraries["scenario"])[0]
    path = tmp_path / "trial.toml"
    path.write_text(f'kind = "scenario"\nscenario = "{name}"\n')
    for option in ("sysctl.tcp_sack=0", "route.quickack=[0, 1]"):
        with pytest.raises(ConfigurationError, match="of the kind scenario have no such knob"):
            load_experiment(path, catalogue, [parse_override(option)])


def test_all_problems_at_once_with_their_lines(tmp_path: Path) -> None:
    text = f"{MINIMAL}[tcp.sysctl]\ntcp_fastopen = 3\ntcp_sack = [0, 1]\n[tcp]\ntfo = 7\n"
    first, *others = problems(tmp_path, text)
    assert first.startswith("/trial.toml:7: tcp.tfo: ")
    assert others == [
        "/trial.toml:4: tcp.sysctl.tcp_fastopen: another knob sets it; use tcp.tfo and tcp.cookies",
        "/trial.toml:5: tcp.sysctl.tcp_sack: a list is swept: write it as "
        "[sweep] sysctl.tcp_sack = [...]",
    ]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            "[tcp.sysctl]\ntcp_sack = 0\nnet.ipv4.tcp_sack = 1",
            "5: tcp.sysctl.net.ipv4.tcp_sack: also in tcp.sysctl.tcp_sack (/trial.toml:4); keep "
            "one of the two",
        ),
        (
            "[tcp.sysctl]\ntcp_sack = 0\n[sweep]\nsysctl.tcp_sack = [0, 1]",
            "6: sweep.sysctl.tcp_sack: also in tcp.sysctl.tcp_sack (/trial.toml:4); keep one of "
            "the two",
        ),
        (
            "[tcp.sysctl]\ntcp_sack = 0\nclient.tcp_sack = 1",
            "5: tcp.sysctl.client.tcp_sack: also in tcp.sysctl.tcp_sack (/trial.toml:4); keep one "
            "of the two; for two values name client and server",
        ),
    ],
)
def test_an_end_has_a_setting_once(tmp_path: Path, lines: str, problem: str) -> None:
    assert problems(tmp_path, f"{MINIMAL}{lines}\n") == [f"/trial.toml:{problem}"]


def test_both_ends_may_have_different_values(tmp_path: Path) -> None:
    found = load(tmp_path, MINIMAL, "sysctl.client.tcp_sack=0", "sysctl.server.tcp_sack=[0, 1]")
    assert len(found.conditions) == 2


def test_a_name_alone_is_explained(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, MINIMAL, "tcp_rto_min_us=20000")
    assert "no knob is named 'tcp_rto_min_us' (sysctls are tcp.sysctl.tcp_rto_min_us)" in found


def test_a_key_without_end_is_a_mistake(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, f"{MINIMAL}[tcp.sysctl]\n{'.'.join(['a'] * 3000)} = 1\n")
    assert "names no sysctl directly" in found


def test_a_manifest_brings_them_back(
    tmp_path: Path, environment: Environment, now: datetime
) -> None:
    experiment = load(tmp_path, MINIMAL, SWEEP, "route.server.congctl=reno")
    trials = plan_trials(experiment)
    write_manifest(tmp_path, make_manifest(experiment, environment, now, ()))
    again = load_manifest(tmp_path).experiment
    assert again == experiment
    assert plan_trials(again) == trials
    assert json.loads(json.dumps(asdict(trials[0])))["condition"]["tcp"]["sysctl"] == {
        "tcp_rto_min_us": 200_000
    }


def test_those_of_strangers_are_checked(tmp_path: Path) -> None:
    (condition,) = load(tmp_path, MINIMAL).conditions_as(Condition)
    good = TcpSpec(sysctl={"tcp_sack": 0}, route={"server.quickack": 1})
    assert check_experiment(Experiment("s", "S", (replace(condition, tcp=good),)), CATALOGUE) == []
    for asked, problem in (
        (TcpSpec(sysctl={"../../kernel/panic": 1}), "names no sysctl"),
        (TcpSpec(sysctl={"tcp_fastopen": 1}), "another knob sets it"),
        (TcpSpec(route={"quickack": 9}), "not a whole number from 0 to 1"),
    ):
        experiment = Experiment("small", "Small", (replace(condition, tcp=asked),))
        (found,) = check_experiment(experiment, CATALOGUE)
        assert problem in found
