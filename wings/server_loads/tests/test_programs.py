"""Commands of the two programs, and the measurement that their reports become."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from testbed.model import TcpSpec
from wings.server_loads.account import ServerAccount
from wings.server_loads.programs import gather_load, generator_argv, server_argv
from wings.server_loads.spec import ArrivalSpec, ServerSpec
from wings.server_loads.tests.loads import LOAD, PRICES, TRIAL, account, report, server_counts

PROGRAM = Path("/bin/program")


def options(argv: tuple[str, ...]) -> dict[str, str]:
    """The options of a command, by name."""
    assert argv[0] == str(PROGRAM)
    return {name.removeprefix("--"): value for name, value in list(pairwise(argv[1:]))[::2]}


def test_in_virtual_time_the_server_has_prices_and_no_work() -> None:
    load = replace(LOAD, server=ServerSpec(request_cost_us=20.0))
    given = options(server_argv(PROGRAM, "10.0.0.1:80", load, 1024, PRICES))
    assert (given["listen"], given["backlog"], given["work-ns"]) == ("10.0.0.1:80", "1024", "0")
    assert given["price-syn-ns"] == str(PRICES["syn"])
    assert given["accepts-at-once"] == "1"
    assert "processors" not in given


def test_in_real_time_its_processor_does_the_work() -> None:
    load = replace(LOAD, server=ServerSpec(request_cost_us=20.0))
    given = options(server_argv(PROGRAM, "10.0.0.1:80", load, 1024, {}, processors=(1,)))
    assert (given["work-ns"], given["processors"]) == ("20000", "1")
    assert not any(name.startswith("price-") for name in given)


def test_each_worker_has_a_processor() -> None:
    load = replace(LOAD, server=ServerSpec(workers=2))
    given = options(server_argv(PROGRAM, "10.0.0.1:80", load, 1024, {}, processors=(2, 3)))
    assert (given["workers"], given["processors"]) == ("2", "2,3")


def test_an_open_loop_has_a_rate() -> None:
    given = options(generator_argv(PROGRAM, "10.0.0.1:80", TRIAL))
    assert (given["rate"], given["seed"], given["arrivals"]) == ("10", "7", "fixed")
    assert (given["warm-up-ms"], given["duration-ms"], given["timeout-ms"]) == (
        "1000", "2000", "10000",
    )  # fmt: skip
    assert "clients" not in given


def test_a_closed_loop_has_clients() -> None:
    closed = replace(LOAD, arrivals=ArrivalSpec(loop="closed", clients=5), tcp=TcpSpec(tfo=True))
    given = options(generator_argv(PROGRAM, "10.0.0.1:80", replace(TRIAL, condition=closed)))
    assert (given["clients"], given["fast-open"]) == ("5", "1")
    assert "rate" not in given


def test_what_was_measured() -> None:
    found = gather_load(report(), account(), dict(PRICES))
    assert (found.started, found.answered, found.all_started, found.all_answered) == (
        20, 20, 30, 30,
    )  # fmt: skip
    assert (found.replies_per_s, found.failed_pct) == (10.0, 0.0)
    assert (found.response_p50_ms, found.response_p99_ms) == (4.25, 9.0)
    assert found.server_cpu_pct == 10.0


def test_in_real_time_the_machine_says_how_busy_it_was() -> None:
    assert gather_load(report(), ServerAccount({}), {}, 42.5).server_cpu_pct == 42.5
    assert gather_load(report(), ServerAccount({}), {}).server_cpu_pct is None


def test_replies_count_in_the_second_in_which_they_come() -> None:
    late = [{"started": 10, "completed": done, "failed": 0} for done in (2, 4, 6, 18)]
    assert (
        gather_load(report(seconds=late), ServerAccount(server_counts()), {}).replies_per_s == 5.0
    )


def test_what_is_no_answer_is_a_failure() -> None:
    ends = report()["connections"] | {
        "completed": 10, "refused": 1, "reset": 2, "timed_out": 3, "cut_short": 1, "invalid": 1,
        "failed": 1, "unopened": 1,
    }  # fmt: skip
    found = gather_load(report(connections=ends), ServerAccount(server_counts()), {})
    assert (found.refused, found.reset, found.timed_out, found.broken) == (1, 2, 3, 4)
    assert found.failed_pct == 50.0


@pytest.mark.parametrize("name", ["response_us", "lateness_us"])
def test_no_times_are_no_times(name: str) -> None:
    found = gather_load(report(**{name: None}), ServerAccount(server_counts()), {})
    assert found.response_p50_ms is None or name != "response_us"
