"""Container around the harness, where it stands for the jail of guests: what the kernel says of it.

Older container runtimes do not let Landlock's calls through, so no jail can be made there.  What
holds a guest then is the container itself, if it does hold: a system call filter, an ordinary user
and no capability can be read (proc_pid_status(5)); that nothing of value is mounted in it, and
which network it has, is for those who start it to know (docs/containers.md).
"""

from __future__ import annotations

import re
from pathlib import Path

STATUS = Path("/proc/self/status")
_FILTERED = 2  # seccomp(2): SECCOMP_MODE_FILTER
_CAPABILITIES = ("CapPrm", "CapEff", "CapInh", "CapAmb")


def read_gaps() -> tuple[str, ...]:
    """Return what a jail has and the container around this process lacks; nothing: it holds."""
    return find_gaps(STATUS.read_text("ascii", "replace"))


def find_gaps(status: str) -> tuple[str, ...]:
    """Return the gaps that a text in the form of /proc/PID/status shows, one phrase each."""
    fields = dict(re.findall(r"^(\w+):\s*(.*)$", status, re.MULTILINE))
    held = sum(int(fields[name], 16) for name in _CAPABILITIES)
    unfiltered = int(fields["Seccomp"]) != _FILTERED
    gaps = {
        "it runs as root (give it a user: --user 1000)": "0" in fields["Uid"].split(),
        "it has capabilities (give it none: --cap-drop ALL)": held != 0,
        "it has no system call filter (take out seccomp=unconfined, --privileged)": unfiltered,
    }
    return tuple(gap for gap, is_open in gaps.items() if is_open)
