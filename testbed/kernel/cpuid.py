"""CPUID in guests: answered from a table where this host can make it fault, else visible.

Asked as the virtual kernel asks: by arch_prctl(2), ARCH_SET_CPUID, in a process of its own, for
which the instruction is then forbidden.
"""

from __future__ import annotations

import sys

from testbed.base import proc

FAULTS = "faults"
VISIBLE = "visible to guests"
# arch_prctl is system call 158 of x86-64, ARCH_SET_CPUID is 0x1012 (asm/prctl.h).
ASK = """\
import ctypes, os
os._exit(0 if ctypes.CDLL(None).syscall(158, 0x1012, 0) == 0 else 1)
"""


def read_cpuid() -> str:
    """``faults`` or ``visible to guests``.

    Raises:
        CommandError: the question did not come to an end.
    """
    argv = (sys.executable, "-I", "-S", "-c", ASK)
    done = proc.run(argv, timeout_s=20, check=False)
    return FAULTS if done.returncode == 0 else VISIBLE
