"""What a kernel of today is told of mechanisms and queues."""

from __future__ import annotations

import re

from testbed.server.mechanisms.mechanism import (
    ABORT_ON_OVERFLOW,
    MECHANISMS,
    SOMAXCONN,
    SYNCOOKIES,
    Mode,
    Queues,
    settings_of,
)
from testbed.server.mechanisms.program import SOURCE


def test_equal_queues_are_the_kernels_own() -> None:
    settings = settings_of(MECHANISMS["abort"], Queues(4096, 4096, syncookies=1))
    assert (settings.backlog, settings.limit, settings.mode) == (4096, 0, Mode(0))
    assert settings.sysctls[SOMAXCONN] == "4096"
    assert settings.aborts
    assert settings.has_cookies


def test_two_queues_are_a_backlog_and_a_limit() -> None:
    settings = settings_of(MECHANISMS["default"], Queues(1024, 128, young=True))
    assert (settings.backlog, settings.limit, settings.mode) == (1024, 128, Mode.YOUNG)
    assert (settings.sysctls[SYNCOOKIES], settings.sysctls[ABORT_ON_OVERFLOW]) == ("0", "0")


def test_no_syn_drop_has_cookies_and_a_backlog_that_is_never_full() -> None:
    settings = settings_of(MECHANISMS["no-syn-drop"], Queues(syn=128, accept=128))
    assert (settings.backlog, settings.limit) == (129, 128)
    assert settings.sysctls[SYNCOOKIES] == "1"
    assert settings.aborts


def test_the_program_has_the_same_bits() -> None:
    declared = re.findall(r"^\t([A-Z_]+) = (0x[0-9a-f]+),", SOURCE.read_text(), re.MULTILINE)
    assert {name: int(bit, 16) for name, bit in declared} == {m.name: m.value for m in Mode}
