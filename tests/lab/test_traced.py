"""Packets of any size, at any time, leave a link with a trace as mahimahi lets them, by each link.

In virtual time to the microsecond.  In real time the link may be late, and a packet that was sent
just before an opportunity may miss it: none is early, and most are on time.
"""

from __future__ import annotations

import json
import os
from array import array
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testbed.kernel.build.pin import read_pin
from testbed.lab.link import bundled, netem, tap
from testbed.lab.link.discipline import by_trace
from testbed.lab.link.tap import Tap
from testbed.model.trace import Trace
from tests.kernel.conftest import guest_init, kernel_binary
from tests.kernel.guests import Guests
from tests.lab import traced
from tests.lab.traced import DELAY_NS, PACKETS
from tests.model.mahimahi import serve
from tests.patience import PATIENT

__all__ = ["guest_init", "kernel_binary"]  # fixtures
IN_GUEST = """\
from testbed.lab.exactness import VIRTUAL
from testbed.lab.link.netem import NETEM
names = {{}}
exec(compile({source!r}, "traced.py", "exec"), names)
leave(**names["observe"](VIRTUAL, NETEM, "", "/tmp", {packed!r}, {framing}))
"""


def irregular() -> Trace:
    draw, at, times = Random(2), 0, array("I")  # noqa: S311 - the same each time
    while len(times) < 200:
        at += draw.choice([0, 0, 1, 2, 5])
        times.append(at)
    return Trace(times)


TRACE = irregular()


def check(seen: dict[str, Any], framing: int) -> list[int]:
    """By how many ns each packet came later than mahimahi would have let it."""
    assert seen["problems"] == []
    assert seen["trace"] == by_trace(TRACE, 1_000_000, 1500 + framing, framing - 14).text
    assert [number for _, number in seen["came"]] == list(range(PACKETS))
    # Before a load a trace goes round from the clock's zero: whole rounds may be left out.
    round_ns = TRACE.end_ms * 1_000_000
    rounds_ns = seen["sent"][0][0] // round_ns * round_ns
    packets = [(ns - rounds_ns, size + framing) for ns, size in seen["sent"]]
    left = serve(TRACE.times, packets, 1500 + framing)
    return [
        came_ns - rounds_ns - DELAY_NS - ns
        for (came_ns, _), ns in zip(seen["came"], left, strict=True)
    ]


@pytest.mark.guest
@pytest.mark.parametrize("framing", [0, 4])
def test_in_virtual_time(
    kernel_binary: Path, guest_init: Path, tmp_path: Path, root: Any, framing: int
) -> None:
    guests = Guests(kernel_binary, guest_init, read_pin("7.3").boot, tmp_path, root.usr)
    source = Path(traced.__file__).read_text()
    words = {"source": source, "packed": TRACE.packed.hex(), "framing": framing}
    raw, _ = guests.run(IN_GUEST.format(**words))
    assert raw.observation is not None, raw
    late_ns = check(json.loads(raw.observation.read_text()), framing)
    assert 0 <= min(late_ns) <= max(late_ns) < 1000


@pytest.mark.root
def test_between_taps(link_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (netem, bundled, tap):  # which it changes
        monkeypatch.setattr(module, "TRACES", module.TRACES)
    backend, tag = Tap(link_program), f"fft{os.getpid()}-t"
    seen = traced.observe(PATIENT, backend, tag, str(tmp_path), TRACE.packed.hex(), 4)
    late_ns = sorted(check(seen, 4))
    assert late_ns[0] > -100_000  # two clocks are compared, and one of them may be slewed
    assert late_ns[len(late_ns) // 2] < 1_000_000
