"""Virtual kernel: a User-Mode Linux guest in virtual time, one for each trial.

``time-travel=inf-cpu`` (Documentation/virt/uml): idle time is skipped and computing costs no time.
Nothing of the user or the path reaches the guest: command line, environment, memory and file tree
are the same everywhere, so equal seeds give equal packets.  Of the machine it sees its processor by
CPUID, where the host cannot make that fault (``testbed.kernel.run.hardware``); the loader, which
would act on it, is held to one level of x86-64, and /proc/cpuinfo and the auxiliary vector are
constant.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from testbed.archive.reading import tls_of
from testbed.base.scratch import scratch_folder
from testbed.base.seeding import system_call_ns
from testbed.kernel.build.symbols import name_in_file, read_symbols
from testbed.kernel.run.image import RESUME_VARIABLE, SAVE_VARIABLE, GuestImages
from testbed.kernel.run.interface import RawResult
from testbed.kernel.run.jail import (
    CONTAINER,
    JAIL,
    MEMORY_FILE_BYTES,
    NEWEST,
    NONE,
    GuestFiles,
    Stage,
    has_fixed_addresses,
    jailed,
    open_stage,
)
from testbed.kernel.run.memory import MEMORY_VARIABLE, GuestMemories
from testbed.kernel.run.sandbox import CONSOLE_FILE, gather_result, run_trial
from testbed.lab.sysctls import DEFAULTS
from testbed.model import OBSERVATION_FILE, TRIAL_FILE, Condition, Ip, Jitter, Trial

# 2023-11-14 22:13:20 UTC: an arbitrary, round start of the guest's real-time clock.
START_NS = 1_700_000_000_000_000_000
MEMORY = "1G"
LENT_BYTES = MEMORY_FILE_BYTES + (64 << 20)
"""A guest's memory, and what arch/um adds to it where large static data, such as lockdep's, lies
behind the kernel's end (um_arch.c, exec-shield gap)."""
TRACE_FILE = "syscalls.trace"
TRACE_OPTION = f"tt-trace=/proc/self/cwd/out/{TRACE_FILE}"

BOOT_S = 60.0
WARNINGS = "loglevel=5"
"""Writes to the console what ``quiet`` hides: warnings of the kernel, and the stacks below them.
Of a sound kernel that is one line, its BogoMIPS.  No packet depends on it: so it is no part of a
kernel's identity."""
REST = 1 / 500
"""For a second between visits a processor works 0.1 ms: tcpdump polls, and the browser's allocator
looks for memory to free every 4 s; others may need the processor, too."""
AWAIT_TRIAL = """\
import os
os.write(3, b"x")
os.read(0, 1)
"""
"""What a program of a guest's own has to do first, in Python (native/init.c)."""
GUEST = f"""\
{AWAIT_TRIAL}
import json
found = {{}}
for name in {sorted(DEFAULTS)!r}:
    try:
        with open("/proc/sys/" + name.replace(".", "/")) as file:
            found[name] = " ".join(file.read().split())
    except OSError:
        pass
with open("/ff/out/{OBSERVATION_FILE}", "w") as file:
    json.dump({{"virtual_s": 0, "sysctls": found}}, file)
"""


@dataclass(frozen=True, slots=True)
class FirstBoot:
    """What came of booting a kernel once.

    Attributes:
        problem: why it does not boot, with its console's end; ``None``: it does.
        sysctls: what it has by itself of the sysctls that loads set, by name.
    """

    problem: str | None
    sysctls: Mapping[str, str]

    def other_defaults(self) -> dict[str, tuple[str, str]]:
        """Return the sysctls that it has otherwise than loads set them: its value, and ours."""
        return {
            name: (value, DEFAULTS[name])
            for name, value in self.sysctls.items()
            if value.split() != DEFAULTS[name].split()
        }


@dataclass(slots=True)
class _Lent:
    """What a guest is lent: descriptors by their variables; and whether it came to its end."""

    descriptors: dict[str, int]
    ended: bool = False


@dataclass(frozen=True, slots=True)
class VirtualKernel:
    """One built User-Mode Linux kernel.

    Attributes:
        version: the pin's name, such as ``7.3``.
        binary: the kernel's executable.
        build: what it was built from, for the manifest.
        boot_options: words that this kernel's command line needs, such as ``seccomp=on``.
        bundle: harness, native helpers and browser driver for the guest.
        usr: the user land of its guests, that of a root.
        confinement: what holds its guests (``testbed.kernel.run.jail``).
        traced: whether the guest's system calls are written to ``TRACE_FILE``.
        lends: whether guests are lent memory and images; else each boots, in memory of its own.
        memories: what its guests are lent.
        images: what they go on from, by kernel's words: seed, jitter and the client's opening.
    """

    version: str
    binary: Path
    build: dict[str, str]
    boot_options: tuple[str, ...]
    bundle: Path
    usr: Path
    confinement: str = JAIL
    traced: bool = False
    lends: bool = True
    name: str = "virtual"
    memories: GuestMemories = field(
        default_factory=partial(GuestMemories, LENT_BYTES), compare=False, repr=False
    )
    images: GuestImages = field(
        default_factory=partial(GuestImages, LENT_BYTES), compare=False, repr=False
    )

    def identity(self) -> dict[str, str]:
        """Return what can influence a result; the jail cannot, and is a fact of the environment."""
        words = command_line(0, self.boot_options, "computing")
        return {**self.build, "command_line": " ".join(words)}

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        """Start a guest for ``trial`` and wait until it halts (see ``Kernel.run``)."""
        (out / TRIAL_FILE).write_text(json.dumps(asdict(trial), sort_keys=True))
        started_s = time.monotonic()
        limit_s = trial.visits * trial.timeout_s + trial.rest_s * REST
        words = self._words(trial, page)
        with self._lent(words) as lent:
            contents = GuestFiles(
                self.binary, self.bundle, page, out, usr=self.usr, inherited=lent.descriptors
            )
            with self.open_stage(contents, slot) as stage:
                start = partial(jailed, stage, words)
                ended, console = run_trial(start, out, limit_s, cancel)
            # Else the jail was killed, and cannot say that it was the last process.
            lent.ended = ended is not None and ended.status >= 0
        raw = gather_result(trial, "the guest", out, ended, console,
                            started_s=started_s, limit_s=limit_s, cancel=cancel,
                            panicked="Kernel panic" in console)  # fmt: skip
        symbols = _symbols_of(self.binary)
        if symbols is None:
            return raw
        name_in_file(out / CONSOLE_FILE, symbols)
        return replace(raw, console_tail=symbols.name_addresses(raw.console_tail))

    def open_stage(self, contents: GuestFiles, slot: int) -> AbstractContextManager[Stage]:
        """Prepare where a guest is started."""
        landlock = 0 if self.confinement in {CONTAINER, NONE} else NEWEST
        return open_stage(contents, slot, landlock=landlock)

    @contextmanager
    def _lent(self, like: tuple[str, ...]) -> Iterator[_Lent]:
        """Lend a guest memory, and an image of its like to go on from or to make.

        Where addresses are random, or nothing is to be lent, it gets neither.  One that is traced
        gets no image, for what it does before is of interest, too.
        """
        lent = _Lent({})
        if not (self.lends and has_fixed_addresses()):
            yield lent
            return
        image = None if self.traced else self.images.take(like)
        if image is not None and image.whole:
            memory = self.memories.lend(image.written)
            memory.fill(image.memory, image.written)
            lent.descriptors[RESUME_VARIABLE] = image.descriptor
        else:
            memory = self.memories.lend()
            if image is not None:
                lent.descriptors[SAVE_VARIABLE] = image.descriptor
        lent.descriptors[MEMORY_VARIABLE] = memory.descriptor
        try:
            yield lent
        finally:
            if image is not None:
                self.images.settle(like, image, ended=lent.ended)
        if lent.ended:
            self.memories.give_back(memory)

    def _words(self, trial: Trial, page: Path | None) -> tuple[str, ...]:
        """Return the kernel's name and arguments."""
        opening = replace(trial.opening, keys=page is not None and tls_of(page) is not None)
        options = (*self.boot_options, *trial.boot_options)
        return ("linux", *command_line(trial.seed, options, _jitter_of(trial), trial.ip),
                WARNINGS, *((TRACE_OPTION,) if self.traced else ()),
                *(("--", opening.text) if trial.client else ()))  # fmt: skip


_symbols_of = cache(read_symbols)


def _jitter_of(trial: Trial) -> Jitter:
    """Return the jitter of a trial; one that is no load of a page has none."""
    return trial.condition.jitter if isinstance(trial.condition, Condition) else "none"


def command_line(
    seed: int, boot_options: tuple[str, ...], jitter: Jitter = "none", ip: Ip = "4"
) -> tuple[str, ...]:
    """Return the guest kernel's command line, by seed, jitter, IP and the pinned options alone."""
    price = (f"tt-syscall-ns={system_call_ns(seed)}",) if jitter == "computing" else ()
    return (
        f"mem={MEMORY}",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/proc/self/cwd/bundle/native", "ro"),
        *("quiet", "time-travel=inf-cpu", f"time-travel-start={START_NS}", f"tt-seed={seed + 1}"),
        *boot_options,
        *price,
        *(("ipv6.disable=1",) if ip == "4" else ()),
        *("con=null", "con0=null,fd:1"),
        *("uml_dir=/proc/self/cwd/uml/", "umid=guest", "init=/init"),
    )


def boot_once(
    version: str, binary: Path, boot_options: tuple[str, ...], init: Path, usr: Path, *,
    confinement: str,
) -> FirstBoot:  # fmt: skip
    """Boot the kernel ``binary``, look at its sysctls, and power it off.

    ``init`` is the guest's process 1, ``usr`` and ``confinement`` are as in ``VirtualKernel``.

    Raises:
        MissingError: there is no jail, or no id, for the guest.
    """
    with scratch_folder("boot") as scratch:
        for part in ("bundle/native/mnt", "bundle/etc/fonts", "page", "out"):
            (scratch / part).mkdir(parents=True)
        shutil.copy(init, scratch / "bundle" / "native" / "init")
        (scratch / "bundle" / "guest.py").write_text(GUEST)
        for path in (scratch, *scratch.rglob("*")):
            path.chmod(0o755)  # a guest that root starts is another user
        bundle = scratch / "bundle"
        kernel = VirtualKernel(version, binary, {}, boot_options, bundle, usr, confinement)
        trial = Trial(Condition("none", "none"), 0, 0, "virtual", version, BOOT_S)
        never = threading.Event()
        raw = kernel.run(trial, scratch / "page", scratch / "out", 0, never)
        if raw.status == "ended" and raw.observation is not None:
            return FirstBoot(None, json.loads(raw.observation.read_text())["sysctls"])
    problem = f"does not boot: {raw.message}; its console ends with {raw.console_tail!r}"
    return FirstBoot(problem, {})
