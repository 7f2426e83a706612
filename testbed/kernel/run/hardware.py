"""Hardware as far as it can influence a result: processor, CPUID, clock, mitigations."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from testbed.base import proc

CPU = Path("/sys/devices/system/cpu")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
CPUINFO = Path("/proc/cpuinfo")
UNKNOWN = "unknown"

FAULTS = "faults"
VISIBLE = "visible to guests"
# arch_prctl is system call 158 of x86-64, ARCH_SET_CPUID is 0x1012 (asm/prctl.h).
ASK = """\
import ctypes, os
os._exit(0 if ctypes.CDLL(None).syscall(158, 0x1012, 0) == 0 else 1)
"""


def read_hardware() -> dict[str, str]:
    """Read it from the running kernel; what that does not say is ``unknown``."""
    return {"build": os.uname().version, "processor": parse_processor(_read(CPUINFO)),
            "processors": str(len(os.sched_getaffinity(0))), "clock": _read(CLOCK),
            "frequency_governor": _read(CPU / "cpu0" / "cpufreq" / "scaling_governor"),
            "mitigations": read_mitigations(CPU / "vulnerabilities")}  # fmt: skip


def parse_processor(cpuinfo: str) -> str:
    """Return the model name, stepping and microcode of the first processor in /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in cpuinfo.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    shown = ("model name", "stepping", "microcode")
    return ", ".join(f"{name} {fields[name]}" for name in shown if name in fields) or UNKNOWN


def read_mitigations(folder: Path) -> str:
    """Read what the kernel does about faults of the processor, which costs system calls time."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    texts = {path.name: _read(path) for path in files}
    harmed = (f"{name}: {text}" for name, text in texts.items() if text != "Not affected")
    return "; ".join(harmed) or ("none needed" if texts else UNKNOWN)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return UNKNOWN


def read_cpuid() -> str:
    """Return whether CPUID can be made to fault here: ``faults`` or ``visible to guests``.

    Raises:
        CommandError: the question did not come to an end.
    """
    argv = (sys.executable, "-I", "-S", "-c", ASK)
    completed = proc.run(argv, timeout_s=20, check=False)
    return FAULTS if completed.returncode == 0 else VISIBLE
