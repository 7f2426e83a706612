"""One suite for every link backend: ``netem`` in the virtual kernel, ``tap`` on this machine.

In virtual time bounds are tight.  In real time a packet is never early, and how late it may be is
the bench's matter: upper bounds are wide enough for a busy machine.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.kernel.build.pin import read_pin
from testbed.lab.calibration import rtt_theory_ms, train_theory
from testbed.lab.link.tap import Tap
from tests.kernel.conftest import guest_init, kernel_binary
from tests.kernel.guests import Guests
from tests.lab import exchanges
from tests.lab.exchanges import LINK, LOST_COUNT, SMALL_COUNT, TRANSFER_BYTES
from tests.patience import PATIENT

__all__ = ["guest_init", "kernel_binary"]  # fixtures
IN_GUEST = """\
from testbed.lab.exactness import HOST, VIRTUAL
from testbed.lab.link.netem import NETEM
names = {{}}
exec(compile({source!r}, "exchanges.py", "exec"), names)
leave(**names["observe"]({exactness}, NETEM, ""))
"""


@dataclass(frozen=True)
class Seen:
    """What a backend did, and how much later than theory its packets may be."""

    found: dict[str, Any]
    late_ms: float

    def between(self, name: str, least: float) -> None:
        """The time is as theory says, or later by no more than it may be."""
        # Two clocks are compared, and one of them may be slewed.
        assert least - 0.1 <= self.found[name] <= least + self.late_ms


def observe_in_guest(
    binary: Path, init: Path, folder: Path, usr: Path, exactness: str
) -> dict[str, Any]:
    guests = Guests(binary, init, read_pin("7.3").boot, folder, usr)
    source = Path(exchanges.__file__).read_text()
    raw, _ = guests.run(IN_GUEST.format(source=source, exactness=exactness))
    assert raw.observation is not None, raw
    found: dict[str, Any] = json.loads(raw.observation.read_text())
    return found


@pytest.fixture(
    scope="module",
    params=[pytest.param("VIRTUAL", marks=pytest.mark.guest, id="netem"),
            pytest.param("HOST", marks=pytest.mark.guest, id="netem-bounded"),
            pytest.param("tap", marks=pytest.mark.root, id="tap")],
)  # fmt: skip
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Everything that was observed of one backend, once."""
    if request.param == "tap":
        backend = Tap(request.getfixturevalue("link_program"))
        return Seen(exchanges.observe(PATIENT, backend, f"fft{os.getpid()}-c"), late_ms=100.0)
    binary, init = (request.getfixturevalue(name) for name in ("kernel_binary", "guest_init"))
    folder = tmp_path_factory.mktemp("guest")
    usr = request.getfixturevalue("root").usr
    return Seen(observe_in_guest(binary, init, folder, usr, request.param), late_ms=0.05)


def test_the_lab_trusts_itself(seen: Seen) -> None:
    assert seen.found["problems"] == seen.found["problems_with_loss"] == []
    assert seen.found["knobs"]["client.net.ipv4.tcp_congestion_control"] == "cubic"
    assert seen.found["knobs"]["server.net.ipv4.tcp_congestion_control"] == "cubic"


def test_unloaded_round_trip(seen: Seen) -> None:
    seen.between("rtt_ms", rtt_theory_ms(LINK))


def test_transfer(seen: Seen) -> None:
    wire_ms = TRANSFER_BYTES * (1500 / 1448) * 8 / LINK.down_kbit
    # Connection and request, then slow start until the line is full, at 10, 20, 40 segments.
    least_ms = wire_ms + 2 * LINK.rtt_ms
    assert least_ms < seen.found["transfer_ms"] < 1.5 * least_ms + seen.late_ms


def test_round_trip_under_flood(seen: Seen) -> None:
    queued_ms = (train_theory(LINK) - 1) * 1500 * 8 / LINK.down_kbit
    waited_ms = seen.found["last_waited_ms"] - LINK.rtt_ms / 2
    # One packet is in service, and some more leave before the last one comes.
    assert queued_ms - 6 - seen.late_ms / 4 < waited_ms < queued_ms + 6 + seen.late_ms


def test_buffer_drops_at_its_end(seen: Seen) -> None:
    # In real time packets leave while others are sent: each one makes room for another.
    assert train_theory(LINK) <= seen.found["survivors"] < seen.found["sent"]
    if seen.late_ms < 1:
        assert seen.found["survivors"] == train_theory(LINK)


def test_small_packets_survive_beside_a_full_queue(seen: Seen) -> None:
    assert LINK.buffer_bytes % 1500 > SMALL_COUNT * 40
    assert seen.found["small_survivors"] == SMALL_COUNT


def test_what_was_sent_before_a_load_is_none_of_it(seen: Seen) -> None:
    assert seen.found["of_before"] == [0, 0]


def test_nothing_is_lost_while_nothing_is_drawn(seen: Seen) -> None:
    assert seen.found["arrived_of_quiet"] == LOST_COUNT


def test_loss(seen: Seen) -> None:
    lost = LOST_COUNT - seen.found["arrived_of_lossy"]
    # 50 are expected; the chance of one outside this is below one in a million, once per seed.
    assert 17 < lost < 90


def test_fast_open_saves_one_round_trip(seen: Seen) -> None:
    saved_ms = seen.found["fetch_ms"] - seen.found["fast_fetch_ms"]
    assert 0.7 * LINK.rtt_ms < saved_ms < 1.3 * LINK.rtt_ms + seen.late_ms


def test_every_packet_went_over_the_link(seen: Seen) -> None:
    assert seen.found["stray_packets"] == 0
    assert seen.found["dropped_packets"] >= seen.found["sent"] - seen.found["survivors"]
