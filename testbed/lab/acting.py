"""Mechanism that acts in a lab: what it does there, and what is read back of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from testbed.lab.readback import State
from testbed.lab.topology import Topology
from testbed.model import Linked

Reading = tuple[dict[str, str], tuple[str, ...]]
"""Settings as the kernel has them, and a sentence for each that is not as asked."""


if TYPE_CHECKING:
    from testbed.lab.laboratory import Lab


class Acting:
    """What a mechanism does in a lab, where a condition asks for it; by itself nothing."""

    def sysctls(self, condition: Linked) -> dict[str, str]:
        """Sysctls that both ends shall have; the lab sets them and reads them back."""
        return {}

    def act(self, topology: Topology, condition: Linked) -> None:
        """Do it, in a lab whose link is open.  The undo is that of the namespaces.

        Raises:
            MissingError, OSError: the kernel refuses.
        """

    def lines(self, condition: Linked) -> dict[str, str]:
        """The lines of a ``State`` that are other than those of the plain lab."""
        return {}

    def read(self, topology: Topology, state: State, condition: Linked) -> Reading:
        """What the kernel has of it now."""
        return {}, ()

    def expect(self, condition: Linked) -> Iterator[tuple[str, str | None]]:
        """Name and value of all that ``read`` reads; ``None``: the kernel alone knows the value."""
        yield from ()

    def prepare(self, lab: Lab, origins: int) -> None:
        """Do what comes before a load, once a server answers at so many ``origins``.

        Raises:
            LabError: an origin did not answer.
        """

    def learned(self, table: Mapping[str, str], condition: Linked) -> set[str]:
        """The lines of a ``State`` that may be others after a load."""
        return set()

    def judge(self, state: State, condition: Linked) -> Iterator[str]:
        """A sentence for what is not as asked after a load, beside what has changed."""
        yield from ()

    def count(self, topology: Topology, condition: Linked) -> tuple[dict[str, int], int]:
        """Packets so far: by name, as ``LabReading.traffic`` has them, and those that it kept.

        Kept are those that it let go no further, without those that it sent itself.
        """
        return {}, 0
