"""Open the lab of one condition: topology, link, knobs; measured and read back before use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.lab import cookies, knobs, link
from testbed.lab.calibration import calibrate
from testbed.lab.topology import Topology, open_topology
from testbed.model import Condition, LabReading

VIRTUAL_TOLERANCE_PCT = 0.1


@dataclass(frozen=True, slots=True)
class Lab:
    """A running lab and what it measured of itself."""

    topology: Topology
    reading: LabReading
    condition: Condition

    def prime_cookies(self, origins: int) -> None:
        """Bring the client's Fast Open cookies into the state that the condition asks for.

        ``cached``: a valid cookie for every origin.  ``cold``: a stale one (the server's key is
        rotated after the priming).  ``not-required``, or no Fast Open: nothing to do.
        """
        tcp = self.condition.tcp
        if tcp.tfo and tcp.cookies != "not-required":
            cookies.prime(self.topology, origins)
            if tcp.cookies == "cold":
                knobs.rotate_key(self.topology)


@contextmanager
def open_lab(
    condition: Condition, origins: int, tag: str = "", tolerance_pct: float = VIRTUAL_TOLERANCE_PCT
) -> Iterator[Lab]:
    """Build, shape, set, measure and read back; the undo takes everything down again."""
    with open_topology(tag, condition.link.mtu_bytes, origins) as topology:
        link.shape(topology, condition.link)
        knobs.set_knobs(topology, condition.tcp)
        measurements = calibrate(topology, condition.link, tolerance_pct)
        if condition.link.loss_pct:
            link.add_loss(topology, condition.link)
        values, errors = knobs.read_knobs(topology, condition.tcp)
        losses, loss_errors = link.read_loss(topology, condition.link)
        reading = LabReading(measurements, values | losses, errors + loss_errors)
        yield Lab(topology, reading, condition)
