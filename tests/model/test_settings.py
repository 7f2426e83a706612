"""Settings by the kernel's names: hashable, in one order, and by end."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from testbed.kinds import read_trial
from testbed.model import Condition, LinkSpec, TcpSpec, Trial
from testbed.model.settings import (
    TcpSettings,
    is_sysctl,
    is_value,
    normal,
    of_end,
    shorten,
    sysctl_path,
)

TCP = TcpSpec(sysctl={"tcp_sack": 0, "client.core.somaxconn": 7}, route={"server.quickack": 1})


def test_order_makes_no_difference() -> None:
    first, other = TcpSettings({"a": 1, "b": "x"}), TcpSettings({"b": "x", "a": 1})
    assert (first, hash(first)) == (other, hash(other))
    assert list(TCP.sysctl) == ["client.core.somaxconn", "tcp_sack"]
    assert {TCP: 1}[replace(TCP, sysctl=dict(reversed(list(TCP.sysctl.items()))))] == 1


@pytest.mark.parametrize(
    ("name", "kept", "path"),
    [("tcp_sack", "tcp_sack", "net.ipv4.tcp_sack"),
     ("net.ipv4.tcp_sack", "tcp_sack", "net.ipv4.tcp_sack"),
     ("ipv4.tcp_sack", "tcp_sack", "net.ipv4.tcp_sack"), ("net.tcp_sack", "net.tcp_sack", None),
     ("core.somaxconn", "core.somaxconn", "net.core.somaxconn"),
     ("net.core.somaxconn", "core.somaxconn", "net.core.somaxconn"),
     ("net.ipv6.bindv6only", "net.ipv6.bindv6only", None),
     ("net.ipv4.conf.all.rp_filter", "conf.all.rp_filter", None),
     ("net.ipv4.neigh.default.gc_thresh1", "neigh.default.gc_thresh1", None),
     ("../../kernel/panic", "../../kernel/panic", None), ("tcp_sack/", "tcp_sack/", None),
     ("tcp_sack\n", "tcp_sack\n", None), ("Tcp_sack", "Tcp_sack", None),
     ("core", "core", "net.ipv4.core"), ("", "", None)],
)  # fmt: skip
def test_names(name: str, kept: str, path: str | None) -> None:
    assert shorten(name) == kept
    assert shorten(f"client.{name}") == f"client.{kept}"
    assert is_sysctl(kept) == (path is not None)
    if path is not None:
        assert sysctl_path(kept) == path


def test_what_each_end_has() -> None:
    assert of_end(TCP.sysctl, "client") == {"core.somaxconn": 7, "tcp_sack": 0}
    assert of_end(TCP.sysctl, "server") == {"tcp_sack": 0}
    assert of_end(TCP.route, "client") == {}


@pytest.mark.parametrize(
    ("given", "kept"),
    [(5, 5), ("5", 5), (" 4096\t1 2 ", "4096 1 2"), ("-1", -1), ("007", "007"), ("-0", "-0"),
     ("9" * 30, "9" * 30)],
)  # fmt: skip
def test_values_have_one_form(given: int | str, kept: int | str) -> None:
    assert normal(given) == kept


@pytest.mark.parametrize(
    ("family", "name", "value", "right"),
    [("sysctl", "tcp_rmem", "4096 131072 6291456", True), ("sysctl", "tcp_sack", 1, True),
     ("sysctl", "tcp_sack", True, False), ("sysctl", "tcp_sack", 0.5, False),
     ("sysctl", "tcp_sack", "", False), ("sysctl", "tcp_sack", "1\x00", False),
     ("sysctl", "tcp_sack", "é", False), ("sysctl", "tcp_sack", 2**64, False),
     ("sysctl", "tcp_sack", None, False), ("route", "quickack", 1, True),
     ("route", "quickack", 2, False), ("route", "quickack", "1", False),
     ("route", "rto_min_ms", 0, False), ("route", "congctl", "bbr", True),
     ("route", "congctl", "../bbr", False), ("route", "congctl", 1, False)],
)  # fmt: skip
def test_values(family: str, name: str, value: object, right: bool) -> None:
    assert is_value(family, name, value) == right


def test_a_trial_without_settings_has_the_id_that_it_had_before_there_were_any() -> None:
    tcp = TcpSpec(tfo=True, initcwnd_segments=3)
    load = Condition("amazon", "graph", LinkSpec(rtt_ms=100.0), tcp)
    assert Trial(load, 0, 7, "virtual", "7.3").id == "25cb6fe8dbc8c247"


def test_each_setting_has_an_id_of_its_own() -> None:
    specs = [TcpSpec(),
             *(TcpSpec(sysctl={name: 1}) for name in ("tcp_sack", "client.tcp_sack", "tcp_dsack")),
             TcpSpec(sysctl={"tcp_sack": 0}), TcpSpec(route={"quickack": 1})]  # fmt: skip
    trials = [Trial(Condition("p", "graph", tcp=tcp), 0, 0, "virtual", "7.3") for tcp in specs]
    assert len({trial.id for trial in trials}) == len(specs)


def test_a_trial_comes_back_from_json() -> None:
    trial = Trial(Condition("p", "graph", tcp=TCP), 0, 0, "virtual", "7.3")
    back = read_trial(json.loads(json.dumps(asdict(trial))))
    assert back == trial
    assert (hash(back), back.id) == (hash(trial), trial.id)
