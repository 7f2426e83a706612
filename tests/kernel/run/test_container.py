"""The container as the jail: what it must hold, and what is said where it does not."""

from __future__ import annotations

import os

import pytest

from testbed.kernel.run.container import find_gaps, read_gaps

HELD = """\
Name:\tpython
Uid:\t1000\t1000\t1000\t1000
Gid:\t0\t0\t0\t0
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t00000000a80425fb
CapAmb:\t0000000000000000
NoNewPrivs:\t0
Seccomp:\t2
Seccomp_filters:\t1
"""


def test_a_runtimes_own_limits_hold_a_user() -> None:
    assert find_gaps(HELD) == ()


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [("Uid:\t1000\t1000\t", "Uid:\t0\t0\t", "runs as root"),
     ("Uid:\t1000\t1000\t1000", "Uid:\t1000\t1000\t0", "runs as root"),
     ("CapEff:\t0000000000000000", "CapEff:\t00000000a80425fb", "capabilities"),
     ("CapAmb:\t0000000000000000", "CapAmb:\t0000000000001000", "capabilities"),
     ("Seccomp:\t2", "Seccomp:\t0", "no system call filter"),
     ("Seccomp:\t2", "Seccomp:\t1", "no system call filter")],
)  # fmt: skip
def test_each_gap_is_named(line: str, instead: str, said: str) -> None:
    assert line in HELD
    (gap,) = find_gaps(HELD.replace(line, instead))
    assert said in gap


def test_all_gaps_are_named_at_once() -> None:
    bare = HELD.replace("1000", "0").replace("CapEff:\t0", "CapEff:\t1")
    assert len(find_gaps(bare.replace("Seccomp:\t2", "Seccomp:\t0"))) == 3


def test_this_kernel_says_all_of_it() -> None:
    assert ("it runs as root" in " ".join(read_gaps())) == (os.geteuid() == 0)
