"""Checks of this machine for ``doctor``: what each found, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.base import places
from testbed.base.errors import MissingError, TestbedError
from testbed.base.scratch import scratch_folder
from testbed.base.units import format_bytes
from testbed.base.wings import provided
from testbed.kernel import REGULAR_VERSIONS, find_confinement
from testbed.kernel.build.cache import KernelBuild, find_kernel
from testbed.kernel.build.native import find_native
from testbed.kernel.build.pin import DEFAULT_VERSION, pins, read_pin
from testbed.kernel.run.container import read_gaps
from testbed.kernel.run.enclosure import require_privileges
from testbed.kernel.run.hardware import FAULTS, read_cpuid
from testbed.kernel.run.host import probe_host
from testbed.kernel.run.jail import (
    CONTAINER,
    JAIL_REMEDY,
    MEMORY_FILE_BYTES,
    SHARED_MEMORY,
    UNJAILED,
    read_hold,
    read_instead,
)
from testbed.kernel.run.virtual import boot_once
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import find_root
from testbed.root.spec import read_spec, root_names
from testbed.setup.bundle import make_bundle

LEAST_DISK = 2 << 30
_SBIN = "/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """One check and its result.  ``needed`` is false for what only costs safety or comfort."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = True


def examine(jobs: int) -> list[MachineCheck]:
    """Look at everything that ``jobs`` guests at once need; makes and changes nothing."""
    checks = [_machine(), _cpuid(), *_roots(), *_kernels()]
    checks += [_jail(), _memory(jobs), _shm(), _disk()]
    return [*checks, _native(), *_wings(), *_host_kernel()]


def healthy(checks: list[MachineCheck]) -> bool:
    """Return whether nothing that is needed is missing."""
    return all(check.ok for check in checks if check.needed)


def _machine() -> MachineCheck:
    platform_name = f"{platform.system()} {platform.machine()}"
    return MachineCheck("machine", platform_name == "Linux x86_64", platform_name,
                        "the virtual kernel needs Linux x86-64")  # fmt: skip


def _cpuid() -> MachineCheck:
    state = read_cpuid()
    return MachineCheck(
        "CPUID", state == FAULTS, state,
        "nothing to do: guests are held to one level of x86-64, and their programs do not ask the "
        "processor",
        needed=False,
    )  # fmt: skip


def find_tool(name: str) -> str | None:
    """Return where the program ``name`` is, also if only root has it on PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")


def _roots() -> Iterator[MachineCheck]:
    """Check which roots are assembled; a run assembles the one that it takes."""
    for name in root_names():
        root = find_root(read_spec(name), places.cache())
        yield MachineCheck(
            f"root {name}", root is not None, str(root.usr) if root else "not assembled",
            f"nothing to do: a run assembles it; now: ./run.sh root assemble {name}", needed=False,
        )  # fmt: skip


def _kernels() -> Iterator[MachineCheck]:
    for version in pins():
        try:
            build = find_kernel(read_pin(version), places.cache())
        except TestbedError as error:
            yield MachineCheck(f"kernel {version}", False, str(error), "as the message says")
            continue
        if build is None and version not in REGULAR_VERSIONS:
            continue  # nobody has asked for this one
        state, remedy = "not built", "nothing to do: a run builds what it needs"
        booted = False
        if build:
            state, remedy = str(build.binary), "this machine cannot run this kernel: report it"
            problem = _boot(version, build)
            booted = problem is None
            state += ", boots" if booted else f": {problem}"
        # One that is not built yet is built by the first run.
        needed = build is not None and version == DEFAULT_VERSION
        yield MachineCheck(f"kernel {version}", booted, state, remedy, needed=needed)


def _boot(version: str, build: KernelBuild) -> str | None:
    """Return why a guest that only powers off does not do so; ``None``: it does."""
    try:
        root = find_root(read_spec(DEFAULT_ROOT), places.cache())
        if root is None:
            return f"not booted: the root {DEFAULT_ROOT} is not assembled"
        native = find_native(places.cache())
        if native is None:
            return "not booted: the C programs are not made"
        held = find_confinement()
        init = native / "init"
        return boot_once(
            version, build.binary, build.boot, init, root.usr, confinement=held
        ).problem
    except (TestbedError, OSError) as error:
        return f"not booted: {error}"


def _jail() -> MachineCheck:
    if find_native(places.cache()) is None:
        found, remedy = "not tried: the C programs are not made", "nothing to do: a run makes them"
        return MachineCheck("jail", False, found, remedy, needed=False)
    instead = read_instead()
    try:
        return MachineCheck("jail", True, read_hold().describe())
    except MissingError as error:
        problem = str(error)
    if instead == CONTAINER:
        return _container(problem)
    allowed = instead is not None
    return MachineCheck(
        "jail", False, problem + (f"; {UNJAILED}=1 lets guests run without one" if allowed else ""),
        f"{JAIL_REMEDY}; or load only pages that you trust, with {UNJAILED}=1 (docs/security.md)",
        needed=not allowed,
    )  # fmt: skip


def _container(problem: str) -> MachineCheck:
    """Check what stands for the jail where the caller says that the container does."""
    gaps = read_gaps()
    held = "an ordinary user without capabilities, with a system call filter"
    return MachineCheck(
        "jail",
        not gaps,
        f"the container is the jail of guests: {'; '.join(gaps) or held}; no other: {problem}",
        "start the container as docs/containers.md says",
    )


def _memory(jobs: int) -> MachineCheck:
    available = parse_meminfo(Path("/proc/meminfo").read_text()).get("MemAvailable", 0)
    required = jobs * MEMORY_FILE_BYTES
    return MachineCheck(
        "memory",
        available >= required,
        f"{format_bytes(available)} available, {format_bytes(required)} for {jobs} jobs",
        "use fewer --jobs, or end other programs",
    )


def parse_meminfo(text: str) -> dict[str, int]:
    """Return the fields of ``/proc/meminfo`` that are in kB, in bytes (proc_meminfo(5))."""
    fields = (line.split() for line in text.splitlines())
    return {
        words[0].rstrip(":"): int(words[1]) * 1024
        for words in fields
        if len(words) == 3 and words[2] == "kB" and words[1].isdigit()
    }


def _shm() -> MachineCheck:
    """Check shared memory: User-Mode Linux maps its memory from there, if it may execute."""
    if not SHARED_MEMORY.is_dir():
        return MachineCheck(str(SHARED_MEMORY), False, "missing",
                            f"mount -t tmpfs tmpfs {SHARED_MEMORY}", needed=False)  # fmt: skip
    state = os.statvfs(SHARED_MEMORY)
    free = state.f_bavail * state.f_frsize
    executable = not state.f_flag & os.ST_NOEXEC
    condition = f"{format_bytes(free)} free, {'' if executable else 'not '}executable"
    return MachineCheck(
        str(SHARED_MEMORY), executable and free >= MEMORY_FILE_BYTES, condition,
        "guests keep their memory in TMPDIR instead: give a container --shm-size=2g, or "
        "make room in /tmp",
        needed=False,
    )  # fmt: skip


def _disk() -> MachineCheck:
    place = places.RESULTS if places.RESULTS.exists() else places.ROOT
    free = shutil.disk_usage(place).free
    remedy = f"free {format_bytes(LEAST_DISK)}, or choose another place with -o DIR"
    condition = f"{format_bytes(free)} free at {place}"
    return MachineCheck("disk", free >= LEAST_DISK, condition, remedy)


def _native() -> MachineCheck:
    folder = find_native(places.cache())
    remedy = "nothing to do: a run makes them"
    return MachineCheck("C programs", folder is not None, str(folder or "not made"), remedy,
                        needed=False)  # fmt: skip


def _wings() -> Iterator[MachineCheck]:
    """Check what only wings need, by what they provide to ``machine_checks``."""
    for each in provided("machine_checks"):
        check: Callable[[], Iterator[MachineCheck]] = each.load()
        yield from check()


def _host_kernel() -> Iterator[MachineCheck]:
    """Check the host kernel from inside an enclosure; virtual time does not need it."""
    name = f"host kernel {os.uname().release}"
    try:
        require_privileges(os.geteuid(), Path("/proc/self/status").read_text())
        root = find_root(read_spec(DEFAULT_ROOT), places.cache())
        if root is None:
            raise MissingError(f"the root {DEFAULT_ROOT} is not assembled; a run assembles it")
        native = find_native(places.cache())
        if native is None:
            raise MissingError("the C programs are not made; a run makes them")
        with scratch_folder("doctor") as scratch:
            facts = probe_host(make_bundle(scratch, native, root).path, root.usr)
        if "problem" in facts:
            raise MissingError(facts["problem"])
    except (TestbedError, OSError) as error:
        yield MachineCheck(name, False, str(error), "only --kernel host needs it", needed=False)
        return
    yield MachineCheck(name, True, f"link backend {facts['backend']}", needed=False)
    yield MachineCheck(
        "host kernel: priority of the link", facts["scheduler"] == "fifo",
        {"fifo": "real time (SCHED_FIFO)"}.get(facts["scheduler"], "that of any process"),
        "give CAP_SYS_NICE, or keep the machine idle: packets are late otherwise", needed=False,
    )  # fmt: skip
