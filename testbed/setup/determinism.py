"""Determinism check: the same trial booted again and again, and where two boots part.

Equal runs have equal artefacts, byte for byte.  Each guest's system calls are traced by the kernel
at no virtual cost (``tt-trace=``, our patch), so that the first packet and the first system call
that differ can be shown.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from threading import Event

from testbed.base.errors import TestbedError
from testbed.base.scratch import scratch_folder
from testbed.capture.difference import describe_difference, first_difference
from testbed.capture.packets import Packet, read_capture
from testbed.kernel.run.interface import Kernel, RawResult
from testbed.kernel.run.virtual import TRACE_FILE
from testbed.model import CAPTURE_FILE, Record, Trial

# struct tt_trace_record: time, result, three arguments, thread, number, command.
TRACE_RECORD = struct.Struct("<Qq3QII16s")
UNISTD = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
CHUNK_RECORDS = 4096

Conclude = Callable[[Trial, RawResult, Path, str, int], Record]


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot: what it left, and the hashes of what must be equal."""

    number: int
    folder: Path
    record: Record


def check_determinism(
    kernel: Kernel, trial: Trial, page: Path, conclude: Conclude, count: int, jobs: int
) -> tuple[str, ...]:
    """Boot ``trial`` ``count`` times, ``jobs`` at once; return a text for each run that differs.

    Raises:
        TestbedError: a boot did not end with a proven measurement.
    """
    with scratch_folder("determinism") as scratch:

        def boot(number: int, slot: int) -> Boot:
            folder = scratch / str(number)
            folder.mkdir()
            raw = kernel.run(trial, page, folder, slot, Event())
            record = conclude(trial, raw, folder, "", 1)
            if record.outcome != "ok":
                raise TestbedError(f"boot {number}: {record.outcome}: {record.reason}")
            return Boot(number, folder, record)

        first = boot(0, 0)
        differences = []
        with ThreadPoolExecutor(jobs) as pool:
            for start in range(1, count, jobs):
                batch = range(start, min(start + jobs, count))
                for run in pool.map(boot, batch, range(jobs)):
                    if _same(first.record, run.record):
                        shutil.rmtree(run.folder)
                    else:
                        differences.append(_describe(first, run))
        return tuple(differences)


def _same(record: Record, other: Record) -> bool:
    first, second = (
        (run.artefacts, run.measured, run.replay, run.proof, run.lab) for run in (record, other)
    )
    return first == second


def _describe(first: Boot, other: Boot) -> str:
    lines = [f"boot {other.number} is not boot {first.number}:"]
    for name in sorted(first.record.artefacts.keys() | other.record.artefacts.keys()):
        hashes = [boot.record.artefacts.get(name, "absent")[:12] for boot in (first, other)]
        if hashes[0] != hashes[1]:
            lines.append(f"  {name}: {hashes[0]} and {hashes[1]}")
    lines += _compare_captures(first, other)
    names = read_call_names(UNISTD)
    lines += first_line_apart("system call", read_calls(first.folder / TRACE_FILE, names),
                              read_calls(other.folder / TRACE_FILE, names))  # fmt: skip
    return "\n".join(lines)


def _compare_captures(first: Boot, other: Boot) -> Sequence[str]:
    """The first packet that differs for its ends, else the first that differs in any bit."""
    base, new = (read_capture(boot.folder / CAPTURE_FILE) for boot in (first, other))
    difference = first_difference(base, new)
    if difference is not None:
        return [
            f"  packets, base is boot {first.number} and new is boot {other.number}:",
            *(f"    {line}" for line in describe_difference(difference).splitlines()),
        ]
    return first_line_apart("packet", map(_line, base.packets), map(_line, new.packets))


def _line(packet: Packet) -> str:
    """A packet to the bit: time since 1970, ends, and what was captured."""
    seconds, rest = divmod(packet.at_ns, 1_000_000_000)
    ends = f"{packet.sender} > {packet.receiver} " if packet.source else ""
    return f"{seconds}.{rest:09d} {packet.protocol} {ends}{packet.frame.hex()}"


def first_line_apart(
    what: str, lines: Iterator[str], other_lines: Iterator[str], before: int = 2
) -> Sequence[str]:
    """Return where two sequences first part, after the ``before`` items that they share."""
    shared: list[str] = []
    for index, (left, right) in enumerate(zip_longest(lines, other_lines, fillvalue="(no more)")):
        if left != right:
            return [f"  first {what} that differs: number {index}",
                    *(f"      both {item}" for item in shared), f"       one {left}",
                    f"     other {right}"]  # fmt: skip
        shared = [*shared, left][-before:]
    return [f"  every {what} is the same"]


def read_calls(trace: Path, names: dict[int, str]) -> Iterator[str]:
    """Yield one line for each system call of a trace file."""
    with trace.open("rb") as file:
        while chunk := file.read(TRACE_RECORD.size * CHUNK_RECORDS):
            complete_bytes = len(chunk) - len(chunk) % TRACE_RECORD.size
            for time, result, a, b, c, thread, number, command in TRACE_RECORD.iter_unpack(
                chunk[:complete_bytes]
            ):
                program = command.split(b"\0")[0].decode(errors="replace")
                call = names.get(number, f"call {number}")
                yield (
                    f"{time / 1e9:.9f} s {program}[{thread}] "
                    f"{call}({a:#x}, {b:#x}, {c:#x}) = {result}"
                )


def read_call_names(header: Path) -> dict[int, str]:
    """Read the names of system calls by number from the C library's header, if it is there."""
    if not header.exists():
        return {}
    definitions = re.findall(r"#define __NR_(\w+) (\d+)", header.read_text())
    return {int(number): name for name, number in definitions}
