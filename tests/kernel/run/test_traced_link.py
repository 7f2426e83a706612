"""Packets of any size, at any time, leave the virtual kernel's trace as mahimahi lets them."""

from __future__ import annotations

import json
from array import array
from random import Random

import pytest

from testbed.model.trace import Trace
from tests.kernel.guests import Guests
from tests.model.mahimahi import serve

SEND = """\
import random, socket, time
from testbed.lab.ends import open_ends, receive
from testbed.lab.laboratory import open_lab
from testbed.lab.link import netem
from testbed.model import Condition, LinkSpec
netem.TRACES = Path("/tmp/traces")
netem.TRACES.mkdir()
(netem.TRACES / "x").write_bytes(bytes.fromhex({packed!r}))
draw, sent, came = random.Random(1), [], []
link = LinkSpec(rtt_ms=10.0, trace_down="x", framing_bytes={framing}, buffer_bytes=10_000_000)
with open_lab(Condition("p", "c", link), 1) as lab, open_ends(lab.topology) as ends:
    for number in range(300):
        if draw.random() < 0.3:
            time.sleep(draw.random() * 0.03)
        size = draw.randint(40, 1500)
        sent.append((time.time_ns(), size))
        ends.server.send(number.to_bytes(4, "big") + bytes(size - 32))
    while (got := receive(ends.client, 5)) is not None:
        came.append((got[0], int.from_bytes(got[1][:4], "big")))
    leave(sent=sent, came=came, problems=lab.reading.problems)
"""


@pytest.mark.guest
@pytest.mark.parametrize("framing", [0, 4])
def test_every_packet_leaves_when_mahimahi_lets_it(guests: Guests, framing: int) -> None:
    draw, at, times = Random(2), 0, array("I")  # noqa: S311 - the same each time
    while len(times) < 200:
        at += draw.choice([0, 0, 1, 2, 5])
        times.append(at)
    raw, _ = guests.run(SEND.format(packed=Trace(times).packed.hex(), framing=framing))
    assert raw.observation is not None, raw
    seen = json.loads(raw.observation.read_text())
    assert seen["problems"] == []
    assert [number for _, number in seen["came"]] == list(range(300))
    # Before a load a trace goes round from the clock's zero: whole rounds may be left out.
    rounds_ns = seen["sent"][0][0] // (at * 1_000_000) * at * 1_000_000
    packets = [(ns - rounds_ns, size + framing) for ns, size in seen["sent"]]
    left = serve(times, packets, 1500 + framing)
    late_ns = [
        came_ns - rounds_ns - 5_000_000 - ns
        for (came_ns, _), ns in zip(seen["came"], left, strict=True)
    ]
    assert max(late_ns) < 1000
    assert min(late_ns) >= 0
