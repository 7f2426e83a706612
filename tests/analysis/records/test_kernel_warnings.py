"""Warnings on consoles: found, told apart, and held against the kernel that is their cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.kernel_warnings import KernelWarning, find_kernel_warnings
from analysis.verdicts.compare.attribution import CellAttribution, blame
from testbed.base.kernel_warning import parse_warnings
from tests.analysis.verdicts.compare.folder import FIRST, made

WARNING = """\
[    0.000000] 0.00 BogoMIPS (lpj=1)
[   87.810000] ------------[ cut here ]------------
[   87.810000] WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0, CPU#0: nginx/24
[   87.810000] CPU: 0 UID: 0 PID: 24 Comm: nginx Not tainted 7.3.4-firstflight #1 VOLUNTARY
[   87.810000] Stack:
[   87.810000]  00000000 00000001 ffffff00 60663e6b
[   87.810000] Call Trace:
[   87.810000]  [<6040c92f>] ? tcp_sendmsg+0x8f/0xa0
[   87.810000]  [<60036aea>] ? dump_stack_lvl+0x5a/0x76
[   87.810000]  [<60021ef8>] ? _printk+0x0/0x61
[   87.810000]  [<6001e39d>] ? __warn.cold+0x68/0xff
[   87.810000]  [<6040c92f>] ? tcp_sendmsg+0x8f/0xa0
[   87.810000]  [<60300945>] ? sock_write_iter+0x95/0x110
[   87.810000]  [<60999999>] ? 0x0000000060999999
[   87.810000] ---[ end trace 0000000000000000 ]---
[  124.559000] reboot: Power down
"""
OLDER = """\
[    3.000000] WARNING: CPU: 0 PID: 22 at net/ipv4/tcp_input.c:99 tcp_ack+0x1/0x2
[    3.000000] Kernel panic - not syncing: Fatal exception
"""


def test_a_warning_is_its_first_line_and_the_functions_below_it() -> None:
    ((title, lines),) = parse_warnings(WARNING)
    assert title == "WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0"
    assert lines == ("WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0, CPU#0: nginx/24",
                     "[<6040c92f>] ? tcp_sendmsg+0x8f/0xa0",
                     "[<60300945>] ? sock_write_iter+0x95/0x110")  # fmt: skip


@pytest.mark.parametrize("line", [
    "WARNING: possible circular locking dependency detected", "WARNING: suspicious RCU usage",
    "BUG: sleeping function called from invalid context at net/core/sock.c:3",
    "UBSAN: shift-out-of-bounds in net/ipv4/tcp_input.c:12:3",
    "Kernel panic - not syncing: Kernel mode fault at addr 0x8, ip tcp_sendmsg+0x15/0x60",
    "rcu: INFO: rcu_sched self-detected stall on CPU",
    "nginx invoked oom-killer: gfp_mask=0xcc0, order=0",
    "TCP: Attempt to release TCP socket in state 1 0000000012345678",
    "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
])  # fmt: skip
def test_each_kind_of_complaint_is_found(line: str) -> None:
    ((title, lines),) = parse_warnings(f"[    1.000000] Linux\n[    2.500000] {line}\n")
    assert (title, lines) == (line, (line,))


def test_what_programs_write_and_what_a_sound_kernel_says_is_none() -> None:
    said = (
        "WARNING: a program\n[    0.000000] Warning: unable to\n[    1.0] TCP: cubic registered\n"
    )
    assert list(parse_warnings(said)) == []


def test_a_panic_after_a_bug_is_part_of_it_and_after_a_warning_is_not() -> None:
    bug = "[ 1.000000] BUG: failure at net/ipv4/tcp.c:1450/tcp_sendmsg()!\n"
    panic = "[ 1.000000] Kernel panic - not syncing: BUG!\n"
    ((_, lines),) = parse_warnings(bug + panic)
    assert len(lines) == 2
    assert [title for title, _ in parse_warnings(OLDER)] == [
        "WARNING: at net/ipv4/tcp_input.c:99 tcp_ack+0x1/0x2",
        "Kernel panic - not syncing: Fatal exception",
    ]


def test_consoles_are_read_and_what_is_not_kept_is_read_in_the_record(tmp_path: Path) -> None:
    loads = [made(FIRST, seed, 1000.0) for seed in range(3)]
    for load, console in zip(
        loads, (WARNING, WARNING.replace("nginx/24", "python3/9")), strict=False
    ):
        folder = tmp_path / "trials" / load.trial_id
        folder.mkdir(parents=True)
        (folder / "console.log").write_text(console)
    loads[2] = replace(loads[2], outcome="failed", reason=f"the guest's kernel panicked\n{OLDER}")
    found = find_kernel_warnings(tmp_path, loads)
    assert [(warning.title.partition(":")[0], warning.trials) for warning in found] == [
        ("WARNING", 2), ("WARNING", 1), ("Kernel panic - not syncing", 1),
    ]  # fmt: skip


def warning(title: str) -> KernelWarning:
    return KernelWarning(title, (title,), 1)


@pytest.mark.parametrize(
    ("base", "new", "blamed"),
    [
        ("", "WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0", True),
        # A patch moves lines; the pinned kernel's build may know no functions.
        ("WARNING: net/ipv4/tcp.c:1449 at 0x000000006040c92f",
         "WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0", False),
        ("WARNING: net/ipv4/tcp.c:1449 at tcp_recvmsg+0x8f/0xa0",
         "WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0", True),
        ("WARNING: net/ipv4/tcp_input.c:7 at tcp_ack+0x1/0x2",
         "WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0", True),
        ("WARNING: suspicious RCU usage", "WARNING: suspicious RCU usage", False),
        ("WARNING: suspicious RCU usage", "WARNING: inconsistent lock state", True),
    ],
)  # fmt: skip
def test_what_the_base_says_too_is_not_blamed_on_the_patch(
    base: str, new: str, blamed: bool
) -> None:
    before = CellAttribution("no effect", "equal to the bit", 1, None)
    after = blame(before, [warning(base)] if base else [], [warning(new)])
    assert (after.verdict == "broken") is blamed
    assert bool(after.kernel_warnings) is blamed
    assert len(after.base_kernel_warnings) == bool(base)
    assert (new in after.reason) is blamed
