"""Interface of the kernels: run one trial, and return how it ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from testbed.base.errors import EXIT_INTERRUPTED, TestbedError
from testbed.model import Cost, Trial
from testbed.model.trace import Trace

Status = Literal["ended", "timeout", "panicked", "failed"]


class InterruptedTrial(TestbedError):  # noqa: N818 - an event, not a fault
    """The trial was stopped from outside before its end; it leaves no record."""

    exit_code = EXIT_INTERRUPTED


@dataclass(frozen=True, slots=True)
class RawResult:
    """End of a guest, before what it measured is judged.

    ``ended`` means that the guest halted by itself and wrote ``observation``; ``message`` is one
    sentence for the other states.  ``console_tail`` is the last lines of the guest's console.
    ``archive`` is the digest of the page that was to be served, ``built`` its folder, ``traces``
    are those that links were to have, by name.
    """

    status: Status
    message: str
    console_tail: str
    cost: Cost | None
    observation: Path | None
    archive: str | None = None
    traces: Mapping[str, Trace] = field(default_factory=dict)
    built: Path | None = None


class Kernel(Protocol):
    """One kernel of one version, on one clock; every method may be called from any thread."""

    @property
    def name(self) -> str:
        """The kind of kernel: ``virtual`` or ``host``."""
        ...

    @property
    def version(self) -> str:
        """Which kernel version runs, as the experiment names it."""
        ...

    @property
    def confinement(self) -> str:
        """What holds a page's code: ``jail``, ``enclosure``, ``container`` or ``none``."""
        ...

    def identity(self) -> dict[str, str]:
        """Return all about the kernel that can influence a result (source, build, arguments)."""
        ...

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        """Run ``trial`` with the built page in folder ``page``, if any, and return how it ended.

        ``out`` is an existing, empty directory; the guest's ``observation.json`` and artefacts
        go there.  ``slot`` is 0..jobs-1 and belongs to the caller alone while this runs (a core,
        an address range).  When ``cancel`` is set the guest is stopped at once.  Nothing that
        was started may outlive this call, nor this process, whatever kills it.

        Raises:
            InterruptedTrial: ``cancel`` was set before the guest ended.
            MissingError: this machine cannot run the kernel at all.
            TrialError: this trial could not be run.
        """
        ...
