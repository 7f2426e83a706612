"""Schema of a comparison as a JSON document: its fields and what they mean."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from analysis.records.cells import Axes
from analysis.records.results import Identity
from analysis.verdicts.compare.attribution import CellAttribution
from analysis.verdicts.compare.comparison import (
    Clocks,
    Direction,
    Effect,
    Part,
    Significance,
    TrialPair,
    Verdict,
)
from analysis.verdicts.compare.kernels import KernelChange, Overview, Saving
from testbed.capture.difference import PacketDifference

_Fields = dict[str, Any]
"""Of the class that it is annotated with, by name."""


class BothValues(TypedDict):
    """A knob that is under test."""

    base: str
    """Its value in the base."""
    new: str
    """Its value in the new results."""


class UnderTest(TypedDict):
    """What differs between the two folders because it is under test (`--across`)."""

    environment: list[Annotated[_Fields, Part]]
    """Parts of the environment."""
    knobs: dict[str, BothValues]
    """Knobs, by name."""


class SideDocument(TypedDict):
    """One cell in one of the two folders."""

    outcomes: dict[str, int]
    """How many trials ended how, by outcome."""
    plt_ms: tuple[float, ...]
    """The page load times of the proven trials; those of another metric are under its name."""
    median_ms: float | None
    """Their median; null where there are none."""


class CellDocument(TypedDict):
    """The verdict on one cell."""

    name: str
    """The cell in words, by the knobs that tell cells apart."""
    condition: Axes
    """The knobs that both sides share, by name ([knobs](knobs.md))."""
    verdict: Verdict
    """What was found."""
    counts_as: Verdict
    """The verdict as it counts: a faster cell as `same` with `--allow-faster`."""
    direction: Direction | None
    """Which way a different cell moved; `changed`: other packets or another outcome, without a load
    time to show it."""
    reason: str
    """The verdict's reason, in a sentence."""
    more_runs: int | None
    """How many more repetitions on each side would tell, as far as can be said."""
    effect: Annotated[_Fields | None, Effect]
    """By how much the metric moved; null without it on both sides."""
    tests: dict[str, Annotated[_Fields, Significance]]
    """In real time, or where environments differ, the significance that each test found, by its
    name."""
    base: Annotated[_Fields | None, SideDocument]
    """The cell in the base."""
    new: Annotated[_Fields | None, SideDocument]
    """The cell in the new results; null where they do not have it."""
    trials: list[Annotated[_Fields, TrialPair]]
    """In virtual time, the trials that both sides have, each with `difference_ms`: the new metric -
    the base's."""
    packets: Annotated[_Fields | None, PacketDifference]
    """In virtual time, the first packet that differs; also as `text`, with its trial's `seed`."""
    packets_note: str | None
    """Why no packet is shown."""
    moved_ms: dict[str, float]
    """Of a slower or faster cell, by how much the mean load spent longer on what
    (`testbed.model.owners.OWNERS`); empty where a side has no account."""
    word: NotRequired[str | None]
    """Between virtual and real time, the verdict of the tolerance; only of two kernels."""
    change: NotRequired[Annotated[_Fields | None, KernelChange]]
    """Of two virtual kernels, what changed; also `parts_at`, the first packet that differs."""
    attribution: NotRequired[Annotated[_Fields | None, CellAttribution]]
    """Of two virtual kernels, what the cell came to."""
    clocks: NotRequired[Annotated[_Fields | None, Clocks]]
    """Between virtual and real time, what both measured; only of two kernels."""


class KernelsDocument(TypedDict):
    """Two kernels that are compared."""

    base: Annotated[_Fields, Identity]
    """The kernel of the base."""
    new: Annotated[_Fields, Identity]
    """The kernel of the new results."""
    words: dict[str, int]
    """Between virtual and real time, how many cells have which verdict of the tolerance."""
    overview_pct: Annotated[_Fields | None, Overview]
    """Of two virtual kernels, how much all cells changed, in percent; `largest` is a condition."""
    overview_pct_by_client: dict[str, Annotated[_Fields, Overview]]
    """The same for the cells of each client, by its name."""
    savings: list[Annotated[_Fields, Saving]]
    """What Fast Open saves on either kernel, each with `difference_ms`: the new kernel's saving -
    the base's."""


class ComparisonDocument(TypedDict):
    """Two results folders compared."""

    schema: int
    """The schema of this document."""
    verdict: Verdict
    """The gravest verdict that counts."""
    exit_code: int
    """The exit code of `compare`."""
    headline: str
    """The verdict in a sentence."""
    base: str
    """The folder of the base."""
    new: str
    """The folder of the new results."""
    kernel: str
    """The kernel of both: `virtual` or `host`."""
    alpha: float
    """How often chance alone may be called a difference, over all cells, in real time or in
    another environment."""
    min_effect_pct: float
    """The least change that matters, of the base's median."""
    allow_faster: bool
    """Whether faster cells count as `same`."""
    metric: str
    """What loads were judged by (`--metric`): `plt_ms` or another. All values are of it and in its
    unit (`cls` has none, whatever a field's name ends in), but for those of `clocks`."""
    counts: dict[Verdict, int]
    """How many cells count as what, by verdict."""
    under_test: UnderTest
    """What differs because it is under test."""
    kernels: NotRequired[KernelsDocument]
    """Both kernels; only where they are two."""
    cells: list[CellDocument]
    """Every cell of the base, in the order of its table."""
    gains: list[CellDocument]
    """Where environments differ, what the second of two arms saves in each condition: the arm's
    knob is `gain`, and all values are savings."""
    uniform_p: float | None
    """The p that ranks of the new draws among the base's are uniform; null in equal environments,
    in real time, of two kernels, or with too few draws."""
    added: list[Axes]
    """The conditions that only the new results have."""
    notes: list[str]
    """What else to know, in sentences."""
