"""What is sent over a link with a trace, and when it came; a guest runs this, too."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from testbed.lab.ends import open_ends, receive
from testbed.lab.exactness import Exactness
from testbed.lab.laboratory import open_lab
from testbed.lab.link import bundled, netem, tap
from testbed.lab.link.protocol import LinkBackend
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec

PACKETS = 300
DELAY_NS = 5_000_000


def observe(
    exactness: Exactness, backend: LinkBackend, tag: str, folder: str, packed: str, framing: int
) -> dict[str, Any]:
    """Packets of any size at any time, down a link with the trace ``packed``, in hexadecimal."""
    home = Path(folder) / "traces"
    home.mkdir()
    (home / "x").write_bytes(bytes.fromhex(packed))
    for module in (netem, bundled, tap):
        module.TRACES = home  # type: ignore[attr-defined]
    draw, sent, came = random.Random(1), [], []  # noqa: S311 - the same each time
    link = LinkSpec(
        rtt_ms=10.0, trace_down="x", framing_bytes=framing, buffer_bytes=1_000_000, up_kbit=10_000
    )
    with (
        open_lab(Condition("p", "c", link), 1, tag, exactness, backend, mechanisms=ACTING) as lab,
        open_ends(lab.topology) as ends,
    ):
        for number in range(PACKETS):
            if draw.random() < 0.3:
                time.sleep(draw.random() * 0.03)
            size = draw.randint(40, 1500)
            sent.append((time.time_ns(), size))
            ends.server.send(number.to_bytes(4, "big") + bytes(size - 32))
        while (got := receive(ends.client, 2)) is not None:
            came.append((got[0], int.from_bytes(got[1][:4], "big")))
        knobs = lab.reading.knobs["down.trace"]
        return {"sent": sent, "came": came, "problems": list(lab.reading.problems), "trace": knobs}
