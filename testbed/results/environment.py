"""Environment of results: all that can influence a number, and facts for the reader.

The environment id is the digest of ``parts`` and ``pages``: the kernel (source, build, command
line), the root whose programs and libraries trials run, our own code that makes a result
(the bundle: harness, native helpers, browser driver) or judges it, and the built pages.
``facts`` are written down but do not count: in virtual time neither core count, memory nor the
user changes a packet, and a git revision may differ by a comment.  Of the processor a guest sees
no more than one level of x86-64 (GLIBC_TUNABLES), and the same /proc/cpuinfo and auxiliary vector
everywhere; CPUID is answered from a table where the host can make it fault, and is visible
elsewhere: the fact ``cpuid`` says which.
A kernel in real time adds the machine to its own identity (``testbed.kernel.run.hardware``).
Records of different ids are never pooled.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import TestbedError
from testbed.model import digest


@dataclass(frozen=True, slots=True)
class Environment:
    """Environment of results.  ``parts`` and ``pages`` decide ``id``; ``facts`` do not."""

    parts: dict[str, str]
    """All that can influence a number: `kernel.` (source, patches, build and command line; in real
    time also the hardware), `root` (digest of all files of the user land), `file.` (digest of each
    file of the user's own), `trace.` (digest of the content of each trace), `code.` (digests of our
    own code: `code.bundle` runs trials, `code.judge` is all that judging them imports) and
    `architecture`."""
    pages: dict[str, str]
    """The digest of each built page, by its name."""
    facts: dict[str, str] = field(default_factory=dict)
    """What cannot influence a number in virtual time, for the reader: `git_revision`, `git_dirty`,
    `machine`, `processor`, `cores`, `memory_bytes`, `python`, `user`, `confinement`, `cpuid`;
    `root_newer`, where packages of a root are not those of its lock, names them; `kernel_misses`
    names what a kernel of the user's own has not of its patches. A baseline has the first two
    only."""

    @property
    def id(self) -> str:
        """First 16 hex digits of the digest of all that can influence a result."""
        return digest({"parts": self.parts, "pages": self.pages})[:16]


def read_environment(
    kernel: Mapping[str, str], user_land: Mapping[str, str], code: Mapping[str, str],
    pages: Mapping[str, str], root: Path,
) -> Environment:  # fmt: skip
    """Ask this machine what it is and join it with what the caller knows.

    ``kernel`` is the kernel's identity, ``user_land`` what names the programs that trials run,
    ``code`` and ``pages`` are digests by name (of our own code that makes or judges results, of
    built pages), ``root`` is the work tree.
    """
    parts = {f"kernel.{key}": value for key, value in sorted(kernel.items())}
    parts |= user_land
    parts |= {f"code.{name}": value for name, value in sorted(code.items())}
    parts["architecture"] = platform.machine()
    return Environment(parts, dict(sorted(pages.items())), read_facts(root))


def read_facts(root: Path) -> dict[str, str]:
    """Read the facts of the machine and the work tree, which are no part of the id."""
    revision, dirty = _git(root)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"git_revision": revision, "git_dirty": dirty, "machine": platform.platform(),
            "processor": _processor(Path("/proc/cpuinfo")), "cores": str(os.cpu_count()),
            "memory_bytes": str(memory), "python": sys.version.split()[0],
            "user": "root" if os.geteuid() == 0 else "ordinary"}  # fmt: skip


def differences(ours: Environment, theirs: Environment) -> list[str]:
    """Return one sentence for each thing that differs and can influence a result."""
    return [
        f"{what}{name}: {then or 'absent'} then, {now or 'absent'} now"
        for what, old, new in (("", theirs.parts, ours.parts), ("page ", theirs.pages, ours.pages))
        for name in sorted(old.keys() | new.keys())
        if (then := old.get(name)) != (now := new.get(name))
    ]


def _git(root: Path) -> tuple[str, str]:
    git = ("git", "-C", str(root))
    try:
        revision = proc.run((*git, "rev-parse", "--verify", "HEAD"), timeout_s=20).stdout.strip()
        changes = proc.run((*git, "status", "--porcelain"), timeout_s=20).stdout.strip()
    except TestbedError:  # no git, no repository, or no commit: unknown, never guessed
        return "unknown", "unknown"
    return revision, "yes" if changes else "no"


def _processor(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")
