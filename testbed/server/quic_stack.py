"""QUIC stack of a web server, as the server itself says it, and held against what was asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.model import Condition, QuicSpec
from testbed.server.nginx import PROGRAMS

READY_FILE = "ready.json"
"""Where ``quic_program`` says what it is, when it listens."""
VERSION_S = 60.0


@dataclass(frozen=True, slots=True)
class QuicStack:
    """A program with its version, its initial window in packets of so many bytes, its algorithm."""

    program: str
    initcwnd_packets: int
    packet_bytes: int
    congestion_control: str

    @property
    def text(self) -> str:
        """All of it, as records have it."""
        return (
            f"{self.program}: {self.initcwnd_packets} packets of {self.packet_bytes} bytes, "
            f"{self.congestion_control}"
        )


def read_stack(scratch: Path, condition: Condition) -> QuicStack | None:
    """Return what has served ``condition`` over QUIC from ``scratch``; ``None``: nothing has.

    nginx says its version alone.  The others are constants of it (ngx_event_quic.c and
    ngx_event_quic_ack.c, 1.27.5 to 1.31.5), which nothing sets.

    Raises:
        LabError: it does not say.
    """
    if condition.protocol != "h3":
        return None
    if condition.web_server == "aioquic":
        return QuicStack(**json.loads((scratch / READY_FILE).read_text("utf-8")))
    said = proc.run((*PROGRAMS[condition.web_server], "-v"), timeout_s=VERSION_S).stderr
    version = re.search(r"nginx/([0-9.]+)", said)
    if version is None:
        raise LabError(f"nginx does not say its version, but {said.strip()!r}")
    return QuicStack(f"nginx {version[1]}", 10, 1200, "cubic")


def check_stack(stack: QuicStack, asked: QuicSpec) -> Iterator[str]:
    """Yield a sentence for each knob that the server does not have as asked."""
    wanted = {
        "initcwnd_packets": asked.initcwnd_packets or stack.initcwnd_packets,
        "congestion_control": stack.congestion_control
        if asked.quic_control == "own"
        else asked.quic_control,
    }
    for name, value in wanted.items():
        if (has := getattr(stack, name)) != value:
            yield f"the server's QUIC has {name} = {has} instead of {value}"
