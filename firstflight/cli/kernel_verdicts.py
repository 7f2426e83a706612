"""Verdicts on several virtual kernels: what ``compare`` and a run have of the wing for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from analysis.records.metric import Metric
from analysis.verdicts.compare.comparison import Comparison
from testbed.base.wings import provided


class KernelVerdicts(Protocol):
    """What a wing provides to the extension point ``kernel_verdicts``."""

    def add_options(self, command: Any) -> Any:
        """Give ``compare`` the options that ``compare`` below takes as ``own``, by default None."""

    def compare(
        self, base: Path, new: Path | None, metric: Metric, min_effect_pct: float | None, *,
        as_json: bool, junit: Path | None, markdown: Path | None, **own: Any,
    ) -> int:  # fmt: skip
        """Print and write what became of each cell of ``base``, and return the exit code.

        Without ``new``, ``base`` is a run on several kernels.

        Raises:
            ConfigurationError: they are not to be compared.
            StorageError: a folder cannot be read, or a file not be written.
        """

    def write(
        self, folder: Path, comparisons: Sequence[Comparison], shown: Sequence[Comparison]
    ) -> tuple[Mapping[str, Any], str]:
        """Write the ``comparisons`` into ``folder``; return that document, and ``shown`` as text.

        Raises:
            StorageError: a file cannot be written.
        """


def find_kernel_verdicts() -> KernelVerdicts | None:
    """Return what the wing provides; ``None``: there is none."""
    return next((each.load() for each in provided("kernel_verdicts")), None)
