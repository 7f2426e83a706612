"""What a kernel is told of mechanisms and queues, and a patched one by sysctls; without root."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import get_args

import pytest

from testbed.base.errors import LabError, MissingError
from testbed.base.namespace import Namespace
from wings.server_loads.mechanisms.apply import apply_management
from wings.server_loads.mechanisms.mechanism import (
    ABORT_ON_OVERFLOW,
    ACCEPT_LIMIT,
    MAX_SYN_BACKLOG,
    MECHANISMS,
    OVERLOAD,
    SOMAXCONN,
    SYNCOOKIES,
    Mode,
    settings_of,
)
from wings.server_loads.mechanisms.program import SOURCE
from wings.server_loads.spec import Mechanism, ServerSpec
from wings.server_loads.tests.mechanisms.scenario import PUBLISHED

BEFORE = {
    SOMAXCONN: "4096", MAX_SYN_BACKLOG: "128", SYNCOOKIES: "1", ABORT_ON_OVERFLOW: "0",
    OVERLOAD: "0", ACCEPT_LIMIT: "0",
}  # fmt: skip


ABORT = replace(PUBLISHED, mechanism="abort")


@dataclass(frozen=True)
class Remembered(Namespace):
    """A namespace that is a table, and of which some names keep what they have."""

    values: dict[str, str] = field(default_factory=dict)
    stubborn: tuple[str, ...] = ()

    def read_sysctl(self, name: str) -> str:
        if name not in self.values:
            raise FileNotFoundError(2, f"there is no {name}")
        return self.values[name]

    def write_sysctls(self, values: dict[str, str]) -> None:
        self.values.update({n: v for n, v in values.items() if n not in self.stubborn})


def test_the_knob_has_the_published_combinations() -> None:
    assert get_args(Mechanism) == tuple(MECHANISMS)


def test_a_patched_kernel_is_told_by_sysctls_and_then_as_before() -> None:
    namespace = Remembered("s", dict(BEFORE))
    asked = replace(PUBLISHED, mechanism="abort rst-syn")
    with apply_management(namespace, "s0", 80, asked) as applied:
        assert (applied.backlog, applied.read_counters()) == (1024, {})
        assert namespace.values == {
            SOMAXCONN: "1024", MAX_SYN_BACKLOG: "2048", SYNCOOKIES: "0", ABORT_ON_OVERFLOW: "1",
            OVERLOAD: str(int(Mode.RST_SYN | Mode.YOUNG)), ACCEPT_LIMIT: "128",
        }  # fmt: skip
    assert namespace.values == BEFORE


def test_a_value_that_is_not_taken_is_named_and_the_rest_undone() -> None:
    namespace = Remembered("s", dict(BEFORE), (SYNCOOKIES,))
    with (
        pytest.raises(LabError, match="tcp_syncookies is '1' in s, asked was '0'"),
        apply_management(namespace, "s0", 80, ABORT),
    ):
        pass
    assert namespace.values == BEFORE


def test_a_missing_sysctl_is_a_missing_feature() -> None:
    without = {name: value for name, value in BEFORE.items() if name != ACCEPT_LIMIT}
    with (
        pytest.raises(MissingError, match=r"lacks a sysctl .* net\.ipv4\.tcp_accept_limit"),
        apply_management(Remembered("s", without), "s0", 80, ABORT),
    ):
        pass
    assert without.keys() == BEFORE.keys() - {ACCEPT_LIMIT}


def test_equal_queues_are_the_kernels_own() -> None:
    settings = settings_of(
        ServerSpec(mechanism="abort", syn_backlog=4096, listen_backlog=4096, syncookies=1)
    )
    assert (settings.backlog, settings.limit, settings.mode) == (4096, 0, Mode(0))
    assert settings.sysctls[SOMAXCONN] == "4096"
    assert settings.sysctls[ABORT_ON_OVERFLOW] == settings.sysctls[SYNCOOKIES] == "1"


def test_two_queues_are_a_backlog_and_a_limit() -> None:
    settings = settings_of(PUBLISHED)
    assert (settings.backlog, settings.limit, settings.mode) == (1024, 128, Mode.YOUNG)
    assert (settings.sysctls[SYNCOOKIES], settings.sysctls[ABORT_ON_OVERFLOW]) == ("0", "0")


def test_cookies_are_as_asked() -> None:
    asked = ServerSpec(syn_backlog=64, listen_backlog=8, syncookies=1, admission="linux-2.4")
    settings = settings_of(asked)
    assert (settings.backlog, settings.limit, settings.mode) == (64, 8, Mode.YOUNG)
    assert settings.sysctls[SYNCOOKIES] == "1"


def test_no_syn_drop_has_cookies_and_a_backlog_that_is_never_full() -> None:
    settings = settings_of(ServerSpec(mechanism="no-syn-drop", syn_backlog=128, listen_backlog=128))
    assert (settings.backlog, settings.limit) == (129, 128)
    assert settings.sysctls[SYNCOOKIES] == settings.sysctls[ABORT_ON_OVERFLOW] == "1"


def test_the_program_has_the_same_bits() -> None:
    declared = re.findall(r"^\t([A-Z_]+) = (0x[0-9a-f]+),", SOURCE.read_text(), re.MULTILINE)
    assert {name: int(bit, 16) for name, bit in declared} == {m.name: m.value for m in Mode}
