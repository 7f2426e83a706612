"""The virtual kernel: a User-Mode Linux guest in virtual time, one boot for each trial.

``time-travel=inf-cpu`` (Documentation/virt/uml): idle time is skipped and computing costs no time.
Nothing of the user or the path reaches the guest: command line, environment, memory and file tree
are the same everywhere, so equal seeds give equal packets.  Of the machine it sees its processor by
CPUID, where the host cannot make that fault (``testbed.kernel.cpuid``); the loader, which would act
on it, is held to one level of x86-64, and /proc/cpuinfo and the auxiliary vector are constant.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from testbed.base import proc
from testbed.kernel.confinement import confined
from testbed.kernel.jail import Contents, Stage, open_stage
from testbed.kernel.protocol import InterruptedTrial, RawResult, Status
from testbed.kernel.remains import keep_regular_files, read_end, read_excess, read_seconds, tail_of
from testbed.model import OBSERVATION_FILE, TRIAL_FILE, Cost, Trial

# 2023-11-14 22:13:20 UTC: an arbitrary, round start of the guest's real-time clock.
START_NS = 1_700_000_000_000_000_000
MEMORY = "1G"
CONSOLE_FILE = "console.log"
TRACE_FILE = "syscalls.trace"
TRACE_OPTION = f"tt-trace=/proc/self/cwd/out/{TRACE_FILE}"


@dataclass(frozen=True, slots=True)
class VirtualKernel:
    """One built User-Mode Linux kernel.

    Attributes:
        version: the pin's name, such as ``7.3``.
        binary: the kernel's executable.
        build: what it was built from, for the manifest.
        boot_options: words that this kernel's command line needs, such as ``seccomp=on``.
        bundle: harness, native helpers and browser driver for the guest.
        jailed: whether bubblewrap holds the guest.
        traced: whether the guest's system calls are written to ``TRACE_FILE``.
    """

    version: str
    binary: Path
    build: dict[str, str]
    boot_options: tuple[str, ...]
    bundle: Path
    jailed: bool
    traced: bool = False
    name: str = "virtual"
    real_time: bool = False

    @property
    def confinement(self) -> str:
        """What holds its guests."""
        return "jail" if self.jailed else "none"

    def identity(self) -> dict[str, str]:
        """What can influence a result; the jail cannot, and is told elsewhere."""
        return {**self.build, "command_line": " ".join(command_line(0, self.boot_options))}

    def run(
        self, trial: Trial, page: Path, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        """Boot a guest for ``trial`` and wait until it halts (see ``protocol.Kernel.run``)."""
        (out / TRIAL_FILE).write_text(json.dumps(asdict(trial), sort_keys=True))
        contents = Contents(self.binary, self.bundle, page, out)
        started = time.monotonic()
        with open_stage(contents, self.jailed, slot) as stage:
            ending, console = self._boot(stage, trial, out, slot, cancel)
        excess = read_excess(out)
        wall_s = time.monotonic() - started
        keep_regular_files(out)
        if ending is None and cancel.is_set():
            raise InterruptedTrial(f"trial {trial.id} was interrupted")
        observation = out / OBSERVATION_FILE
        virtual_s = read_seconds(observation)
        status: Status
        if excess:
            status, message = "failed", f"the guest {excess}"
        elif ending is None:
            status, message = "timeout", f"the guest did not end within {trial.timeout_s:g} s"
        elif "Kernel panic" in console:
            status, message = "panicked", "the guest's kernel panicked"
        elif virtual_s is None:
            status, message = "failed", f"the guest left no observation (status {ending.status})"
        else:
            status, message = "ended", ""
        return RawResult(
            status=status,
            message=message,
            console_tail="" if status == "ended" else tail_of(console),
            cost=None if ending is None else Cost(ending.cpu_s, wall_s, virtual_s or 0.0),
            observation=observation if status == "ended" else None,
        )

    def _boot(
        self, stage: Stage, trial: Trial, out: Path, slot: int, cancel: threading.Event
    ) -> tuple[proc.Ending | None, str]:
        argv = (
            *stage.prefix,
            *("/usr/bin/taskset", "--cpu-list", str(core_of(slot))),
            stage.kernel,
            *command_line(trial.seed, self.boot_options),
            *((TRACE_OPTION,) if self.traced else ()),
        )
        environment = {"PATH": "/usr/bin:/bin", **stage.environment}
        # Read by the file that it was opened as: the guest may have put another in its place.
        with (out / CONSOLE_FILE).open("w+b") as console:
            with self._started(argv, stage, environment, console) as guest:
                ending = proc.wait(guest, trial.timeout_s, cancel, lambda: bool(read_excess(out)))
            return ending, read_end(console)

    def _started(
        self, argv: Sequence[str], stage: Stage, environment: dict[str, str], console: IO[bytes]
    ) -> AbstractContextManager[proc.Process]:
        if self.jailed:
            return confined(argv, console, env=environment, pass_fds=stage.descriptors)
        return proc.started(
            argv, cwd=stage.directory, env=environment, stdout=console, stderr=console
        )


def command_line(seed: int, boot_options: tuple[str, ...]) -> tuple[str, ...]:
    """The guest kernel's command line: a function of the seed and the pinned options alone."""
    return (
        f"mem={MEMORY}",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd/bundle/native", "ro"),
        *("quiet", "time-travel=inf-cpu", f"time-travel-start={START_NS}", f"tt-seed={seed + 1}"),
        *boot_options,
        *("ipv6.disable=1", "con=null", "con0=null,fd:1"),
        *("uml_dir=/proc/self/cwd/uml/", "umid=guest", "init=/init"),
    )


def core_of(slot: int) -> int:
    """The core that guests of ``slot`` are pinned to: one guest, one core."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[slot % len(cores)]
