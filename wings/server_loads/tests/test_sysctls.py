"""What a spec asks of the clients' kernel, and of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from wings.server_loads import sysctls
from wings.server_loads.spec import ArrivalSpec
from wings.server_loads.sysctls import FIRST_TIMEOUT, LINEAR, load_sysctls


def test_clients() -> None:
    assert load_sysctls(ArrivalSpec(syn_retries=2)) == {
        "client": {
            "net.ipv4.ip_local_port_range": "1024 65535",
            "net.ipv4.tcp_syn_retries": "2",
            "net.ipv4.tcp_tw_reuse": "1",
        },
        "server": {},
    }


def test_both_ends_wait_as_long_for_an_answer_where_the_kernel_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysctls, "IPV4", tmp_path)
    with pytest.raises(MissingError, match=r"virtual kernel 7\.3, or set syn_timeout_s = 1"):
        load_sysctls(ArrivalSpec(syn_timeout_s=3))
    (tmp_path / "tcp_rto_init_ms").touch()
    asked = load_sysctls(ArrivalSpec(syn_timeout_s=3))
    assert {asked[end][FIRST_TIMEOUT] for end in ("client", "server")} == {"3000"}


def test_a_list_has_its_first_timer_and_its_length_from_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysctls, "IPV4", tmp_path)
    for name in ("tcp_rto_init_ms", "tcp_syn_linear_timeouts"):
        (tmp_path / name).touch()
    asked = load_sysctls(ArrivalSpec(syn_timeouts_s="3 3.2 3.2 6.2"))["client"]
    assert (asked[FIRST_TIMEOUT], asked[LINEAR]) == ("3000", "0")
    assert asked["net.ipv4.tcp_syn_retries"] == "4"


@pytest.mark.parametrize("known", [True, False])
def test_linear_retries_are_written_where_a_kernel_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    monkeypatch.setattr(sysctls, "IPV4", tmp_path)
    if known:
        (tmp_path / "tcp_syn_linear_timeouts").touch()
    asked = load_sysctls(ArrivalSpec(syn_linear_timeouts=0))["client"]
    assert asked.get(LINEAR) == ("0" if known else None)
    # Today's number is every kernel's own, and read back with the others.
    assert LINEAR not in load_sysctls(ArrivalSpec())["client"]
