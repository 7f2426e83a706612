"""What a program may have changed of the host: one mapping before and one after are compared.

What a machine does by itself is no change of it: what is drawn, loaded or mounted for whoever first
needs it is there before anything is read, and counters are left out, as are the names of other
tests of this project, which may run at the same time.
"""

from __future__ import annotations

import math
import os
import re
import socket
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from testbed.base import proc
from tests.lab.wires import namespace

DEADLINE_S = 60.0
SYSCTLS = ("net/ipv4", "net/core")
COUNTERS = ("nf_conntrack_count",)
# Mininet's links are among them; the names of a trial on the host kernel are ff, digits, and an s.
FOREIGN = re.compile(r"[/ ](ff-test-|fft|ffprobe|ff\d+l\d+-)")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
FOLDERS = ("/run/netns", "/etc/netns", "/etc/chromium", "/etc/opt", "/sys/fs/cgroup", "/sys/module")


def read_host_state() -> dict[str, str]:
    """Links, routes, sysctls, mounts, name spaces, policies, cgroups, modules."""
    _settle()
    state = {f"ip {what}": _show(what) for what in ("link", "address", "route", "rule")}
    state |= {f"listing {folder}": "\n".join(_tree(Path(folder))) for folder in FOLDERS}
    state["mounts"] = Path("/proc/self/mounts").read_text()
    state = {
        name: "\n".join(line for line in text.splitlines() if not FOREIGN.search(line))
        for name, text in state.items()
    }
    return state | read_sysctls(*SYSCTLS)


def read_sysctls(*trees: str) -> dict[str, str]:
    """The sysctls below these folders of /proc/sys that can be read, by their paths."""
    _settle()
    found = {}
    for path in (path for tree in trees for path in list_files(Path("/proc/sys", tree))):
        if path.name not in COUNTERS and not FOREIGN.search(str(path)):
            try:
                found[str(path)] = path.read_text()
            except OSError:  # some can only be written
                continue
    return found


def read_holders(inode: int, kind: str = "net", until_s: float = math.inf) -> list[int]:
    """The processes of this machine in one namespace; without any, and no mount, it is gone.

    Its number is then another's soon: ``until_s`` (CLOCK_BOOTTIME) leaves out what began later.
    """
    holders = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            began_ticks = int((path / "stat").read_text().rpartition(")")[2].split()[19])
            if began_ticks > until_s * TICKS_PER_S:
                continue
            if (path / "ns" / kind).stat().st_ino == inode:
                holders.append(int(path.name))
        except OSError:  # ended meanwhile
            continue
    return holders


def list_named(words: str) -> list[int]:
    """Processes of this machine with these words in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # ended meanwhile
            continue
    return found


def await_that(happens: Callable[[], bool]) -> None:
    """Poll until it does."""
    deadline = time.monotonic() + DEADLINE_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@cache
def _settle() -> None:
    """Have done what happens once, by whoever comes first.

    ip(8) mounts the folder of names, and the kernel loads the modules of a link.
    """
    with namespace("h") as made:
        for discipline in ("netem", "tbf rate 1mbit burst 2kb limit 2kb", "clsact"):
            place = () if discipline == "clsact" else ("root",)
            words = ("tc", "-n", made.name, "qdisc", "replace", "dev", "lo", *place)
            proc.run((*words, *discipline.split()), check=False)  # a kernel may have none of them
    draw_key()


def draw_key() -> None:
    """Have the kernel draw its key of Fast Open, which the first listener's option makes it do."""
    with socket.socket() as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 1)


def _show(what: str) -> str:
    # Without how many seconds of a lease are left.
    return re.sub(r"_lft \w+", "", proc.run(("ip", "-o", what, "show")).stdout)


def _tree(folder: Path) -> list[str]:
    """Names two levels down: deeper, other programs come and go."""
    paths = []
    for top, names, files in os.walk(folder):
        paths += [str(Path(top) / name) for name in (*names, *files)]
        if len(Path(top).relative_to(folder).parts) >= 1:
            names.clear()
    return sorted(paths)


def list_files(folder: Path) -> list[Path]:
    """The files below it, also while some of its folders go (``rglob`` raises an error then)."""
    return sorted(Path(top, name) for top, _, files in os.walk(folder) for name in files)
