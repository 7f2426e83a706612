"""Run of selftests: a guest for each, as many at once as asked for, verdicts in the order asked.

A guest is the kernel in virtual time as trials have it (``testbed.kernel.run.virtual``): the same
seed, so the same verdict, on an idle machine and on a loaded one.
"""

from __future__ import annotations

import json
import queue
import resource
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.base.kernel_warning import LEAKS, parse_warnings
from testbed.base.scratch import scratch_folder
from testbed.kernel.build.cache import KernelBuild
from testbed.kernel.run.interface import RawResult
from testbed.kernel.run.jail import GuestFiles, Stage
from testbed.kernel.run.sandbox import CONSOLE_FILE
from testbed.kernel.run.virtual import VirtualKernel
from testbed.model import Condition, LinkSpec, Trial
from wings.kernels.selftests.packetdrill import PROGRAM, Packetdrill
from wings.kernels.selftests.plan import Selftest
from wings.kernels.selftests.verdict import Said, Verdict, judge

GUEST = Path(__file__).with_name("guest.py")
CALL_NS = 2000
"""What a system call costs: where none costs time, a program that waits by calling waits for ever,
and what happens at one instant happens in one order alone (tcp_blocking_blocking-write.pkt)."""
LIMIT_S = 900.0
"""How long each command may take by the guest's clock: ten times netdev's own limit."""
WALL_S = 240.0
"""How long a guest may take by the machine's clock, however slow that is."""
AWK = "bin/mawk"
"""awk(1), which roots of guests have not and the build root has."""
WHICH = '#!/bin/sh\ncommand -v "$@"\n'
"""which(1), which no root has, and the runner of packetdrill's scripts calls."""
FUNCTIONS = """\
sysctl() {
  local word values=()
  for word in "$@"; do
    case $word in
      -q|-w|-qw) ;;
      -*) command sysctl "$@"; return ;;
      *=*) values+=("$word") ;;
      *) command sysctl "$@"; return ;;
    esac
  done
  local name status=0
  for word in "${values[@]}"; do
    name=${word%%=*}
    printf '%s\\n' "${word#*=}" > "/proc/sys/${name//.//}" || status=1
  done
  return "$status"
}
"""
"""sysctl(8) for bash, which finds it by BASH_ENV: a script of packetdrill sets some twenty, three
times over, and starting programs is what a guest is slowest at."""
SHADOW_BYTES = 1 << 45
"""Twice the shadow that arch/um maps, an eighth of what a process can address."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all tests of a run have in common.

    Attributes:
        version: the kernel's name.
        build: the kernel.
        usr: the user land of the guests.
        native: the folder of the testbed's C programs.
        tools: the user land of the build root, for a program that the guests' has not.
        confinement: what holds the guests.
        packetdrill: the program; ``None``: there is none.
        shadowed: whether the kernel keeps a shadow of its memory (CONFIG_KASAN).
    """

    version: str
    build: KernelBuild
    usr: Path
    native: Path
    tools: Path
    confinement: str
    packetdrill: Packetdrill | None
    shadowed: bool

    @property
    def words(self) -> tuple[str, ...]:
        """What the kernel's command line has beyond that of every kernel."""
        return (*self.build.boot, f"tt-syscall-ns={CALL_NS}")


class ShadowedKernel(VirtualKernel):
    """A kernel that maps a shadow of all its addresses."""

    @contextmanager
    def open_stage(self, contents: GuestFiles, slot: int) -> Iterator[Stage]:
        """Let a guest's data be bound by its addresses alone: hardly any is touched."""
        bound = f"limit={resource.RLIMIT_DATA}:"
        with super().open_stage(contents, slot) as stage:
            prefix = tuple(f"{bound}{SHADOW_BYTES}" if word.startswith(bound) else word
                           for word in stage.prefix)  # fmt: skip
            yield replace(stage, prefix=prefix)


def run_tests(tests: Sequence[Selftest], bench: Bench, logs: Path, jobs: int) -> Iterator[Verdict]:
    """Yield the verdict on each of ``tests``, in their order, ``jobs`` guests at once.

    What each said, and its kernel, is written to a folder of its own in ``logs``.

    Raises:
        InterruptedTrial: it was stopped from outside.
    """
    slots, cancel = queue.SimpleQueue[int](), threading.Event()
    for number in range(jobs):
        slots.put(number)
    with scratch_folder("kernel") as scratch:
        bundle = _lay_bundle(scratch / "bundle", bench)
        kernel = (ShadowedKernel if bench.shadowed else VirtualKernel)(
            bench.version, bench.build.binary, {}, bench.words, bundle, bench.usr,
            bench.confinement, lends=not bench.shadowed,
        )  # fmt: skip

        def perform(test: Selftest) -> Verdict:
            slot = slots.get()
            try:
                return _perform(test, kernel, logs / test.name.replace("/", "."), slot, cancel)
            finally:
                slots.put(slot)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield from pool.map(perform, tests)
            finally:
                cancel.set()
                pool.shutdown(cancel_futures=True)


def _lay_bundle(bundle: Path, bench: Bench) -> Path:
    """Make the folder of what guests run, the same for all tests, and return it."""
    for part in ("native/mnt", "etc/fonts", "programs"):
        (bundle / part).mkdir(parents=True)
    shutil.copy(bench.native / "init", bundle / "native" / "init")
    shutil.copy(GUEST, bundle / "guest.py")
    programs = bundle / "programs"
    (programs / "which").write_text(WHICH)
    (programs / "functions.sh").write_text(FUNCTIONS)
    shutil.copy(bench.tools / AWK, programs / "awk")
    if bench.packetdrill is not None:
        shutil.copy(bench.packetdrill.program, programs / PROGRAM)
    for path in (bundle.parent, bundle, *bundle.rglob("*")):
        path.chmod(0o755)  # a guest that root starts is another user
    return bundle


def _perform(
    test: Selftest, kernel: VirtualKernel, out: Path, slot: int, cancel: threading.Event
) -> Verdict:
    if test.left_out:
        return Verdict(test.name, "skipped", test.left_out)
    out.mkdir(parents=True)
    commands = [{"argv": command.argv, "name": command.name} for command in test.commands]
    task = {"folder": test.folder, "commands": commands, "limit_s": LIMIT_S}
    (out / "test.json").write_text(json.dumps(task))
    # A page load that is none: it says which IP the guest has, and for how long it may run.
    condition = Condition("none", "none", link=LinkSpec(ip="dual"))
    trial = Trial(condition, 0, 0, "virtual", kernel.version, WALL_S)
    raw = kernel.run(trial, test.root, out, slot, cancel)
    return read_verdict(test, raw, out)


def read_verdict(test: Selftest, raw: RawResult, out: Path) -> Verdict:
    """Return the verdict on a test whose guest left ``out``."""
    console = _read(out / CONSOLE_FILE)
    if raw.observation is None:
        return _unended(test, raw, console)
    observed = json.loads(raw.observation.read_text())
    said = [Said(result["name"], result["status"], _read(out / f"output-{number}.txt"))
            for number, result in enumerate(observed["results"])]  # fmt: skip
    # What it said while it booted (boot.txt) is not the test's; what leaked it says at its end.
    kernel = _read(out / "kernel.txt") + console.partition(LEAKS)[2]
    return judge(test.name, said, kernel, round(observed["virtual_s"], 6))


def _unended(test: Selftest, raw: RawResult, console: str) -> Verdict:
    """Return the verdict on a test whose guest did not come to its end: what it says says why."""
    warning = next(parse_warnings(console), None)
    if warning is None and raw.status == "panicked":
        tail = tuple(raw.console_tail.splitlines())
        warning = tail[0], tail
    if warning is not None:
        title, shown = warning
        return Verdict(test.name, "failed", f"the kernel says: {title}", (), shown)
    reason = f"{raw.message}; try again, or see its logs"
    return Verdict(test.name, "incomplete", reason, (), tuple(raw.console_tail.splitlines()[-5:]))


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.is_file() else ""
