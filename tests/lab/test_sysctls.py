"""TCP sysctls: pinned to their documented defaults, whatever a namespace had before."""

from __future__ import annotations

import pytest

from testbed.base.namespace import Namespace
from testbed.lab import sysctls
from testbed.lab.sysctls import (
    BY_VERSION,
    DEFAULTS,
    describe_sysctls,
    judge_sysctls,
    pin_sysctls,
    read_machine_sysctls,
    read_sysctls,
    set_sysctls,
)
from tests.lab.wires import namespace

SACK, PACING = "net.ipv4.tcp_sack", "net.ipv4.tcp_pacing_ss_ratio"
NAMED = (
    *("abort_on_overflow", "app_win", "autocorking", "dsack", "early_retrans", "ecn", "frto"),
    *("fin_timeout", "keepalive_time", "max_syn_backlog", "min_rtt_wlen", "moderate_rcvbuf"),
    *("mtu_probing", "notsent_lowat", "pacing_ca_ratio", "pacing_ss_ratio", "recovery"),
    *("reordering", "rto_min_us", "sack", "slow_start_after_idle", "syn_retries", "syncookies"),
    *("thin_linear_timeouts", "timestamps", "tso_win_divisor", "window_scaling"),
)


def in_namespace(made: Namespace) -> dict[str, str]:
    with made.entered():
        return read_sysctls()


def test_what_moves_packets_is_pinned() -> None:
    assert {f"net.ipv4.tcp_{name}" for name in NAMED} < DEFAULTS.keys()
    assert not BY_VERSION & DEFAULTS.keys()


def test_what_is_wrong_is_named() -> None:
    found = {SACK: "0", PACING: "200", "net.ipv4.tcp_new": "7"}
    wanted = {"net.ipv4.tcp_rmem": "1 2 3"}
    assert judge_sysctls(found, wanted) == ("net.ipv4.tcp_rmem is not there, asked was '1 2 3'",
                                            f"{SACK} is '0', asked was '1'")  # fmt: skip
    assert judge_sysctls({SACK: "0"}, {SACK: "0"}) == ()


def test_a_line_for_all_of_them() -> None:
    found = {SACK: "1", "net.ipv4.tcp_limit_output_bytes": "1048576"}
    line = describe_sysctls(found)
    assert line.endswith(" limit_output_bytes=1048576")
    assert describe_sysctls({**found, SACK: "0"}) != line
    # A key is no setting, and changes when it is rotated.
    assert describe_sysctls({**found, "net.ipv4.tcp_fastopen_key": "1-2-3-4"}) == line


@pytest.mark.root
def test_all_that_were_changed_are_pinned_again() -> None:
    with namespace("s") as made:
        fresh = in_namespace(made)
        made.write_sysctls({SACK: "0", PACING: "150", "net.core.somaxconn": "7"})
        pin_sysctls(made, {"net.ipv4.tcp_fastopen": "3"})
        found = in_namespace(made)
    assert fresh.keys() == found.keys()
    assert judge_sysctls(found, {"net.ipv4.tcp_fastopen": "3"}) == ()
    assert len(found) > 60
    assert {name for name in found if name.startswith("net.ipv4.tcp_available")} == set()


@pytest.mark.root
def test_one_that_cannot_be_set_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Namespace.write_sysctls

    def refuse(self: Namespace, values: dict[str, str]) -> None:
        if SACK in values:
            raise PermissionError(1, "Operation not permitted")
        written(self, values)

    with namespace("s") as made:
        made.write_sysctls({SACK: "0"})
        monkeypatch.setattr(Namespace, "write_sysctls", refuse)
        pin_sysctls(made, {})
        assert judge_sysctls(in_namespace(made), {}) == (f"{SACK} is '0', asked was '1'",)


@pytest.mark.root
def test_a_knob_that_the_kernel_lacks_is_an_error() -> None:
    with namespace("s") as made, pytest.raises(OSError, match="tcp_nonsense"):
        pin_sysctls(made, {"net.ipv4.tcp_nonsense": "1"})


@pytest.mark.root
def test_what_turns_out_to_be_the_machine_s_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, undone = {SACK: "1"}, []

    def write(_: Namespace, values: dict[str, str]) -> None:
        kept.update(values)

    def write_back(values: dict[str, str]) -> None:
        undone.append(values)

    monkeypatch.setattr(Namespace, "write_sysctls", write)
    monkeypatch.setattr(sysctls, "_read", lambda names: {name: kept[name] for name in names})
    monkeypatch.setattr(sysctls, "_write_back", write_back)
    with namespace("s") as made:
        (problem,) = set_sysctls("client", made, {SACK: "0"})
    assert problem.startswith(f"client: {SACK} of this kernel (")
    assert "the whole machine's, which no trial changes" in problem
    assert undone == [{SACK: "1"}]


def test_those_of_the_machine() -> None:
    assert read_machine_sysctls().keys() <= {
        f"net.core.{name}"
        for name in ("default_qdisc", "dev_weight", "netdev_budget", "netdev_budget_usecs",
                     "netdev_max_backlog", "netdev_tstamp_prequeue", "rmem_max", "wmem_max")
    }  # fmt: skip
