"""Pool of workers: who they are, and batches of trials that go there and come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class BatchNews:
    """A line of a batch that runs: ``ready``, ``began``, ``progress`` or ``entry``."""

    number: int
    says: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """The end of a batch: entries by trial id, and why there are no more of them."""

    number: int
    entries: Sequence[tuple[str, bytes]]
    problem: str = ""


class Pool(Protocol):
    """Workers of an engine: who they are, and batches that go there and come back."""

    @property
    def address(self) -> str:
        """Where the engine is, as it was asked for."""
        ...

    def now_s(self) -> float:
        """Return the time by the pool's clock, in seconds."""
        ...

    def workers(self) -> Mapping[str, int]:
        """Return the workers that are there now, and how many batches each runs at once.

        Raises:
            StorageError: the engine is gone.
        """
        ...

    def submit(self, number: int, worker: str, request: bytes) -> None:
        """Send a request to a worker, as the batch ``number``."""
        ...

    def cancel(self, number: int) -> None:
        """Forget a batch; one that waits does not begin."""
        ...

    def wait(self, seconds: float) -> Sequence[BatchNews | BatchEnd]:
        """Return what has come, as soon as something has, and after ``seconds`` at the latest.

        Raises:
            StorageError: the engine is gone.
        """
        ...
