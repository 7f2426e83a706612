"""Capture packets at the client's end of the link with tcpdump(8), times in nanoseconds."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.model import Linked

# Ethernet, IP and TCP headers with all options, and the first line of a request in a SYN.
SNAP_BYTES = 256
WHOLE_BYTES = 65535
BLOCK_S = 1.0
"""After which a block of packets is handed over that is not full: tcpdump asks for that."""
CAPTURED_MOST = 250_000
"""Packets: a bounded capture of more than that has the first."""
COUNT = re.compile(r"^(\d+) packets? (captured|received|dropped) ?", re.MULTILINE)


def snap_bytes(condition: Linked, *, tls: bool = False) -> int:
    """Return how much of each packet a proof needs.

    That is all, if checksums tell which are damaged, or if TLS is spoken, which is read with keys.
    """
    return WHOLE_BYTES if tls or condition.link.corrupt_pct else SNAP_BYTES


def capture_argv(
    device: str,
    pcap: Path,
    most: int | None = None,
    snap: int = SNAP_BYTES,
    *,
    in_blocks: bool = False,
) -> tuple[str, ...]:
    """Command that writes packets on ``device`` to ``pcap``: ``most``, or until interrupted.

    Of each ``snap`` bytes are kept.  ``in_blocks``: the kernel hands them over by the hundred, or
    after ``BLOCK_S``; to be woken by each is a third of what a bulk transfer costs a guest.
    """
    return (
        *("tcpdump", "-i", device, "-n", "-w", str(pcap), "--time-stamp-precision=nano"),
        *("-s", str(snap), "-B", "16384", "-Z", "root"),
        *(() if in_blocks else ("--immediate-mode",)),
        *(("-c", str(most)) if most is not None else ()),
    )


@contextmanager
def capture(
    namespace: Namespace,
    device: str,
    pcap: Path,
    log: Path,
    most: int | None = None,
    snap: int = SNAP_BYTES,
    *,
    in_blocks: bool = False,
) -> Iterator[None]:
    """Capture while the block runs, ``most`` packets if given; afterwards the file is complete.

    Arguments are those of ``capture_argv``.

    Raises:
        LabError: tcpdump did not start, or dropped packets.
    """
    with ExitStack() as undo:
        output = undo.enter_context(log.open("wb"))
        argv = (*namespace.prefix, *capture_argv(device, pcap, most, snap, in_blocks=in_blocks))
        child = undo.enter_context(proc.started(argv, stdout=output, stderr=output))
        if not proc.becomes_ready(child, lambda: b"listening on" in log.read_bytes()):
            raise LabError(f"tcpdump did not start: {log.read_text(errors='replace')}")
        try:
            yield
        finally:
            if in_blocks:
                time.sleep(2 * BLOCK_S)  # until it has the last one, which is not full
            # Not child.send_signal(): it would reap one that is gone, whose end we wait for.
            os.kill(child.pid, signal.SIGINT)
            ended = proc.wait(child, proc.READY_S, Event())
    if ended is None:
        raise LabError(f"tcpdump did not end within {proc.READY_S:g} s of its interrupt")
    log_text = log.read_text(errors="replace")
    # Captured: what tcpdump wrote.  Received: what passed its filter, whether it was read or not.
    counts = {what: int(count) for count, what in COUNT.findall(log_text)}
    is_complete = counts.get("captured") in (counts.get("received", -1), most)
    if not is_complete or counts.get("dropped") != 0:
        raise LabError(f"the capture is not complete: {log_text.strip()}")
