"""The model of a comparison of two results folders: its options, its cells and its verdict."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from analysis.records.cells import Axes
from analysis.records.metric import PLT, Metric
from analysis.stats.estimates import Interval, SampleStatistics
from analysis.stats.twosample import estimate_unpaired_shift
from analysis.verdicts.compare.attribution import CellAttribution
from analysis.verdicts.compare.kernels import KernelChange, Kernels, Overview, overview_of
from testbed.base.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    ConfigurationError,
)
from testbed.capture.difference import PacketDifference
from testbed.model import DEFAULT_KIND

Verdict = Literal["same", "different", "inconclusive"]
Direction = Literal["slower", "faster", "changed"]
"""``changed``: other packets or another outcome, without a load time to say it by."""

EXIT_CODES: dict[Verdict, int] = {"different": EXIT_OUT_OF_TOLERANCE,
                                  "inconclusive": EXIT_INCONCLUSIVE, "same": EXIT_OK}  # fmt: skip
"""The gravest first."""
ALPHA = 0.05
VIRTUAL = "virtual"
MIN_EFFECT_PCT = {VIRTUAL: 0.1, "host": 1.0}
"""By kernel, in percent of the base's median load time."""
LANES_EFFECT_PCT = 0.5
"""The same for the kernels of one run, which are expected to differ in packets and times."""
EVERYTHING = ("all",)
"""As ``across``: whatever differs in the environment is under test."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How two folders are compared.

    ``across`` names what is under test and may differ: knobs, or pages (``pages``, ``pages.NAME``,
    or ``all``).  Other parts of the environment may be named, and differ without.
    ``alpha`` is how often an A/A comparison may be called different, over all its cells.
    ``min_effect_pct`` of ``None`` is the kernel's MIN_EFFECT_PCT.  With ``allow_faster`` a faster
    cell is shown and counts as same.  ``metric`` is what loads are judged by.  ``attribute``
    asks what cells came to on another virtual kernel, even if both have one version.
    """

    across: tuple[str, ...] = ()
    alpha: float = ALPHA
    min_effect_pct: float | None = None
    allow_faster: bool = False
    metric: Metric = PLT
    attribute: bool = False

    def check(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            ConfigurationError: with all of them.
        """
        problems = []
        if not 0.0 < self.alpha < 0.5:
            problems.append(f"alpha {self.alpha:g} is no chance of error: it is above 0, below 0.5")
        if self.min_effect_pct is not None and not 0.0 <= self.min_effect_pct < 100.0:
            problems.append(
                f"the minimum effect of {self.min_effect_pct:g} % must be at least 0, below 100"
            )
        if problems:
            raise ConfigurationError(problems)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the environment that differs."""

    name: str
    """The part's name, as in the manifest; `pages.` and `version.` (of a client) go before."""
    base: str | None
    """Its value in the base; null where it has none."""
    new: str | None
    """Its value in the new results; null where they have none."""


@dataclass(frozen=True, slots=True)
class Side:
    """One cell in one of the two folders: how many trials ended how, and the proven ones' metric.

    ``median_ms`` is the median of ``values``, in the metric's unit; ``None`` where there are none.
    """

    outcomes: dict[str, int]
    values: tuple[float, ...]
    median_ms: float | None


@dataclass(frozen=True, slots=True)
class Effect:
    """How much later loads end, or reach another metric, in the new results; negative: sooner."""

    ms: float
    """The shift, in the metric's unit."""
    pct: float | None
    """The shift in percent of the base's median."""
    mean_ms: float
    """The difference of the means: a stall in a few loads moves it, and no median."""
    interval_ms: Interval | None = None
    """The shift's confidence interval, in real time."""

    @classmethod
    def unpaired(cls, base: Sequence[float], new: Sequence[float], reference: float) -> Effect:
        """Return the effect from ``base`` to ``new``, in percent of ``reference``."""
        shift = estimate_unpaired_shift(base, new)
        pct = shift.value / reference * 100.0 if reference > 0 else None
        mean = statistics.fmean(new) - statistics.fmean(base)
        return cls(shift.value, pct, mean, shift.interval)

    @property
    def direction(self) -> Direction:
        """Which way the loads moved."""
        moved = self.ms or self.mean_ms
        return "changed" if moved == 0 else "slower" if moved > 0 else "faster"


@dataclass(frozen=True, slots=True)
class Significance:
    """The significance that a test found."""

    p: float
    """The test's p."""
    corrected: float
    """p, corrected for all tests of the comparison."""


@dataclass(frozen=True, slots=True)
class TrialPair:
    """The same trial in both folders, on the virtual kernel."""

    seed: int
    """The trial's seed."""
    repetition: int
    """The trial's repetition, from 0."""
    base_ms: float
    """The metric in the base."""
    new_ms: float
    """The metric in the new results."""
    same_capture: bool | None
    """Whether the packet captures are equal to the bit; null where a digest is missing."""
    same_har: bool | None
    """Whether the HAR files are; null where a digest is missing."""

    @property
    def difference_ms(self) -> float:
        """How much later the new one is."""
        return self.new_ms - self.base_ms

    @property
    def same(self) -> bool:
        """Whether nothing that both kept differs by a bit."""
        kept = self.same_capture is not False and self.same_har is not False
        return kept and self.base_ms == self.new_ms


@dataclass(frozen=True, slots=True)
class Timing:
    """What one kernel measured of a cell: page load times, and what was beside them."""

    plt_ms: SampleStatistics | None
    """The page load times; null where nothing is proven."""
    main_ms: float | None
    """How long the browser's main thread was busy until the load event, median; null where the
    client does not report it."""
    all_ms: float | None
    """The CPU time of all the browser's processes, median; null as before."""
    unwaited_ms: float | None
    """How long no request was under way, median."""
    requests: int
    """How many requests a load has."""
    link: dict[str, float]
    """The calibrated link, by measurement."""
    worst_lateness_ms: float | None
    """By how much the link let a packet out too late at the most, over all loads."""
    mean_lateness_ms: float | None
    """The mean of that."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """One cell on two kernels, and how much the new one may take longer for what was measured."""

    base: Timing
    """The cell in the base."""
    new: Timing
    """The cell in the new results."""
    cpu_ms: float | None
    """How much longer the browser's main thread was busy; null where it is not reported."""
    link_ms: float
    """By how much the new link's calibrated slowness can prolong a load at the most."""
    slack_ms: float
    """What timers can add if each request waited for one."""


@dataclass(frozen=True, slots=True)
class CellFinding:
    """The verdict on one cell, and why: as `analysis.verdicts.compare.schema` says of a cell.

    ``axes`` are its condition, ``significance`` its tests, and ``packets`` are of the trial with
    the seed ``packets_seed``.
    """

    axes: Axes
    verdict: Verdict
    reason: str
    base: Side | None
    new: Side | None
    direction: Direction | None = None
    effect: Effect | None = None
    significance: dict[str, Significance] = field(default_factory=dict)
    more_runs: int | None = None
    trials: tuple[TrialPair, ...] = ()
    packets: PacketDifference | None = None
    packets_seed: int | None = None
    packets_note: str | None = None
    word: str | None = None
    change: KernelChange | None = None
    clocks: Clocks | None = None
    attribution: CellAttribution | None = None
    moved_ms: dict[str, float] = field(default_factory=dict)

    @property
    def has_numbers(self) -> bool:
        """Whether both sides have a proven load with the metric."""
        return all(side and side.median_ms is not None for side in (self.base, self.new))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results folders compared: as `analysis.verdicts.compare.schema` says of the document.

    ``parts`` are the differing parts of the environment and ``knobs`` the knobs that were left
    out of matching cells: both under test.  ``names`` are the axes that tell the cells apart.
    ``kind`` is what their trials do.  ``drawn`` says that the environments differ, so that draws
    were compared.  ``misses`` says what of its patches the new kernel has not, so that no cell can
    show it.
    """

    base: str
    new: str
    kernel: str
    alpha: float
    min_effect_pct: float
    allow_faster: bool
    parts: tuple[Part, ...]
    knobs: dict[str, tuple[str, str]]
    names: tuple[str, ...]
    cells: tuple[CellFinding, ...]
    added: tuple[Axes, ...] = ()
    notes: tuple[str, ...] = ()
    kernels: Kernels | None = None
    metric: Metric = PLT
    kind: str = DEFAULT_KIND
    drawn: bool = False
    gains: tuple[CellFinding, ...] = ()
    uniform: float | None = None
    misses: str = ""

    @property
    def clocks_differ(self) -> bool:
        """Whether one kernel runs in virtual time and the other in real time."""
        return self.kernels is not None and self.kernels.base.kernel != self.kernels.new.kernel

    def counted(self, cell: CellFinding) -> Verdict:
        """The verdict as it counts: a faster cell is as good as the same where that is allowed."""
        return "same" if self.is_better(cell) and self.allow_faster else cell.verdict

    def is_better(self, cell: CellFinding) -> bool:
        """Whether loads got better, by as much as counts."""
        better = "slower" if self.metric.more else "faster"
        return cell.verdict == "different" and cell.direction == better

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many cells count as what, the gravest first."""
        verdicts = [self.counted(cell) for cell in self.cells]
        return {verdict: verdicts.count(verdict) for verdict in EXIT_CODES}

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict that counts, of a cell or a gain."""
        found = {self.counted(cell) for cell in (*self.cells, *self.gains)}
        return next((verdict for verdict in EXIT_CODES if verdict in found), "inconclusive")

    @property
    def exit_code(self) -> int:
        """The process's exit code."""
        return EXIT_CODES[self.verdict]

    @property
    def overviews(self) -> dict[str, Overview]:
        """Of two virtual kernels: how much the cells of each client changed.

        One client may leave the network alone and another order its requests by its threads.
        """
        changes: dict[str, dict[int, KernelChange]] = {}
        for place, cell in enumerate(self.cells):
            if cell.change is not None:
                changes.setdefault(str(cell.axes.get("client")), {})[place] = cell.change
        by_client = {client: overview_of(by_place) for client, by_place in changes.items()}
        return {client: overview for client, overview in by_client.items() if overview is not None}

    @property
    def overview(self) -> Overview | None:
        """Of two virtual kernels: how much all cells changed."""
        return overview_of({i: cell.change for i, cell in enumerate(self.cells) if cell.change})

    @property
    def words(self) -> dict[str, int]:
        """Between virtual and real time: how many cells have which of the tolerance's verdicts."""
        verdicts = [cell.word for cell in self.cells if cell.word is not None]
        return {word: verdicts.count(word) for word in dict.fromkeys(verdicts)}

    @property
    def worst_first(self) -> tuple[CellFinding, ...]:
        """The cells by verdict, without a number first, then by the size of the effect."""
        grave = list(EXIT_CODES)

        def badness(cell: CellFinding) -> tuple[int, bool, float]:
            pct = cell.effect.pct if cell.effect else None
            return grave.index(cell.verdict), pct is not None, -abs(pct or 0.0)

        return tuple(sorted(self.cells, key=badness))
