"""What is compared of a machine: not what it does by itself, or what others leave on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.host_state import draw_key, read_host_state, read_sysctls
from tests.lab.wires import joined, namespace

pytestmark = [pytest.mark.machine, pytest.mark.root]
KEY = Path("/proc/sys/net/ipv4/tcp_fastopen_key")


def test_a_key_is_drawn_before_the_first_listener_has_it_drawn() -> None:
    with namespace("key") as fresh, fresh.entered():
        assert set(KEY.read_text()) <= set("0-\n")
        draw_key()
        drawn = KEY.read_text()
        draw_key()
        assert KEY.read_text() == drawn != "0" * 8
        assert set(drawn) - set("0-\n")
    state = read_host_state()
    assert set(state[str(KEY)]) - set("0-\n")


def test_other_tests_come_and_go() -> None:
    before = read_host_state()
    with joined("come"):
        assert read_host_state() == before


def test_what_a_program_set_is_seen() -> None:
    with namespace("set") as fresh, fresh.entered():
        before = read_sysctls("net/ipv4")
        fresh.write_sysctls({"net.ipv4.tcp_fastopen": "519"})
        after = read_sysctls("net/ipv4")
    assert {name for name in before if before[name] != after[name]} == {
        "/proc/sys/net/ipv4/tcp_fastopen"
    }
