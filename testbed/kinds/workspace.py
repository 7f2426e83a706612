"""Site of a trial: the files where it is performed, and the lab that it opens there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.client.interface import PageLoader
from testbed.lab.exactness import HOST
from testbed.lab.laboratory import Lab, open_lab
from testbed.lab.tcp import NOTHING, Sysctls
from testbed.lab.topology import Topology
from testbed.mechanisms.acting import ACTING
from testbed.model import Trial
from testbed.model.traffic import Neighbour


@dataclass(frozen=True, slots=True)
class EarlyStart:
    """A client that was started before the trial was known, at a CLOCK_REALTIME in ns."""

    client: PageLoader
    launched_ns: int


@dataclass(frozen=True, slots=True)
class Site:
    """Files of a trial where it is performed: all paths exist, ``scratch`` is empty.

    ``page`` is an empty folder for a trial that loads none.  ``management`` is the compiled BPF
    program that manages a server's connections, where the kernel does not.  ``aligned`` is for
    virtual time, where a load starts at a round instant; in real time the lab has the host's
    bounds, and the machine is watched.

    ``topology`` and ``early`` are what was there before the trial was known: the lab's wires, and
    a client.  ``obstacle`` is why that could not be had.
    """

    page: Path
    out: Path
    bundle: Path
    scratch: Path
    tag: str = ""
    aligned: bool = True
    management: Path | None = None
    topology: Topology | None = None
    early: EarlyStart | None = None
    obstacle: Exception | None = None


def open_lab_of(
    trial: Trial,
    origins: int,
    site: Site,
    own: Mapping[str, Sysctls] = NOTHING,
    neighbours: tuple[Neighbour, ...] = (),
) -> AbstractContextManager[Lab]:
    """Return the lab: exact in virtual time, in real time as exact as a machine can be.

    ``own`` has sysctls of one end only, by its role; ``neighbours`` share the link.
    """
    condition, tag = trial.linked, site.tag
    if site.aligned:
        return open_lab(
            condition, origins, tag, seed=trial.seed, own=own, laid=site.topology,
            neighbours=neighbours, mechanisms=ACTING,
        )  # fmt: skip
    from testbed.lab.link.backend import choose_backend  # nothing that a guest imports

    backend, seed = choose_backend(), trial.seed
    return open_lab(
        condition, origins, tag, HOST, backend, seed, own=own, neighbours=neighbours,
        mechanisms=ACTING,
    )  # fmt: skip


def link_numbers(lab: Lab) -> dict[str, float]:
    """Return the link's own numbers after a load; a link of the kernel's knows no lateness."""
    numbers = asdict(lab.read_link())
    return {name: float(value) for name, value in numbers.items() if isinstance(value, int | float)}
