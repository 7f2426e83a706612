"""The verbs ``kernel bisect`` and ``kernel bisect-step``: which commit changes page load times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from analysis.records.metric import Metric
from firstflight.cli.choice import Choice, join_options, sweep_options
from firstflight.cli.exits import EXIT_SKIP
from firstflight.cli.means import no_store_option
from firstflight.cli.metric import metric_option
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    ConfigurationError,
    MissingError,
    TestbedError,
    TrialError,
)
from testbed.base.scratch import scratch_folder
from testbed.kernel.build.compiler import BuildError
from testbed.kernel.build.patches import PatchError
from testbed.kernel.build.pin import pins
from testbed.kernel.run.interface import InterruptedTrial
from wings.kernels.bisection import Judgement, bisect, steps_of
from wings.kernels.cli.bisect_measure import (
    CellMeasure,
    Measure,
    PromiseMeasure,
    SelftestMeasure,
)
from wings.kernels.cli.source import keep_kernels
from wings.kernels.own.definition import OwnKernel, define, forget_own, own_kernels
from wings.kernels.own.git import Git, resolve
from wings.kernels.selftests.packetdrill import VARIABLE, find_packetdrill
from wings.kernels.verdicts.table import FailRule
from wings.scenarios.choice import choose_scenarios

CONFIG = places.CONFIGS / "kernel-try.toml"
_log = log.logger(__name__)
_VERDICTS = {"good": EXIT_OK, "bad": EXIT_OUT_OF_TOLERANCE, "skip": EXIT_SKIP}
_file = click.Path(path_type=Path, dir_okay=False)
_bisect_options = join_options(
    click.argument("cells", metavar="[CELLS]", required=False),
    click.option("--git", type=click.Path(path_type=Path), default=Path(), metavar="DIR",
                 help="The git tree; default: where this is called."),
    click.option("--base", metavar="KERNEL",
                 help="Pinned kernel whose configuration and patches are used; default: the "
                      "nearest that fit."),
    click.option("--experiment", type=_file, default=CONFIG, metavar="CONFIG",
                 help="The cells to load; default: configs/kernel-try.toml."),
    click.option("--threshold", "least_pct", type=float, default=0.0, metavar="PCT",
                 help="A cell is bad if it is slower by this many percent."),
    click.option("--promise", "promises", metavar="NAME|FILE", multiple=True,
                 help="Instead of CELLS: a kernel is bad if this scenario has another verdict "
                      "on it; repeatable."),
    click.option("--selftest", "selftests", metavar="NAME", multiple=True,
                 help="Instead of CELLS: a kernel is bad if it fails this one of its own "
                      "tests; repeatable."),
    click.option("--packetdrill", type=click.Path(path_type=Path, exists=True, file_okay=False),
                 metavar="FOLDER", help=f"Source of packetdrill, instead of {VARIABLE}."),
    click.option("--any", "any_packet", is_flag=True, help="A cell is bad if any packet differs."),
    sweep_options,
    no_store_option,
    metric_option,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Search:
    """The same measure of one commit's kernel after the other, each compared with the first's.

    ``folder`` has a results folder for each, the first one's as ``good``.
    """

    services: Services
    measure: Measure
    git: Path
    base: str | None
    folder: Path

    def begin(self, kernel: OwnKernel | str) -> None:
        """Measure the first kernel: of the tree, or one that has a name.

        Raises:
            TestbedError: it cannot be built, or what it comes to does not count.
        """
        with self._kept(kernel) as version:
            if not self.measure.run(version, self.folder / "good"):
                raise TrialError(f"{version}: nothing of it counts; see {self.folder / 'good'}")

    def define(self, revision: str | None) -> OwnKernel:
        """Return the kernel of a revision; without one, of the work tree as it is."""
        name = f"bisect-{revision[:12]}" if revision else "bisect-step"
        return define(name, places.data(), base=self.base, patches=(), fragments=(), git=self.git,
                      revision=revision)  # fmt: skip

    def judge(self, revision: str | None) -> Judgement:
        """Build the kernel of a revision, measure it, and compare it with the first.

        What cannot be built or does not count is skipped, and the log says why.

        Raises:
            InterruptedTrial: the user has stopped it.
        """
        try:
            kernel = self.define(revision)
            folder = self.folder / kernel.name.removeprefix("bisect-")
            with self._kept(kernel) as version:
                self.measure.run(version, folder)
            return self.measure.judge(self.folder / "good", folder)
        except InterruptedTrial:
            raise
        except TestbedError as error:
            _log.warning("it cannot be judged: %s", error)
            return "skip"

    def narrowed(self, bad: str) -> _Search:
        """Return the search by few of the cells that tell ``bad`` from the first kernel."""
        if not isinstance(self.measure, CellMeasure) or self.measure.cells:
            return self
        measure = self.measure.narrow(self.folder / "good", self.folder / bad[:12])
        _log.info("judged by: %s", "; ".join(measure.cells) or "all cells together")
        return replace(self, measure=measure)

    @contextmanager
    def _kept(self, kernel: OwnKernel | str) -> Iterator[str]:
        """Keep a kernel of the tree under its name as long as the block takes."""
        if isinstance(kernel, str):
            yield kernel
            return
        keep_kernels(self.services, [kernel], replaced=True)
        try:
            yield kernel.name
        finally:
            forget_own(kernel.name, places.data())


@click.command("bisect")
@click.option(
    "--good", required=True, metavar="REV", help="The older revision, without the change."
)
@click.option("--bad", required=True, metavar="REV", help="The newer revision, with the change.")
@_bisect_options
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new folder of the results; default: results/<UTC>-bisect.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write what was found as JSON.")
@pass_services
def bisect_command(services: Services, /, good: str, bad: str, output: Path | None, as_json: bool,
                   git: Path, **chosen: Any) -> int:  # fmt: skip
    """Find the commit in a git tree that changes page load times, or the result of a test.

    CELLS are written as for --only: page=amazon,rtt_ms=20.  The tree itself is only read.

    Exit code: 0 found, 5 several commits remain that cannot be judged, 2 nothing to find.
    """
    store = places.data() / "git-objects"
    oldest, newest = (resolve(git, revision, store) for revision in (good, bad))
    repository = Git(oldest.repository, oldest.objects)
    steps = steps_of(repository, oldest.commit, newest.commit)
    folder = output or services.results / f"{services.now():%Y%m%dT%H%M%SZ}-bisect"
    search = _search(services, folder, git, **chosen)
    _log.info("%s: about %d commits to judge between %s and %s", folder, steps, good, bad)
    search.begin(search.define(oldest.commit))
    if search.judge(newest.commit) != "bad":
        raise ConfigurationError(
            [f"{bad} is no worse than {good} in these cells, promises or tests, so nothing is "
             "to be found; choose others, or --any for any other packet"]
        )  # fmt: skip

    search = search.narrowed(newest.commit)

    def judge(commit: str, left: int) -> Judgement:
        _log.info("%s; about %d more after it", repository.describe(commit), left)
        judgement = search.judge(commit)
        _log.info("%s: %s", commit[:12], judgement)
        return judgement

    bisection = bisect(repository, oldest.commit, newest.commit, judge)
    found = len(bisection.suspects) == 1
    if as_json:
        click.echo(json.dumps(asdict(bisection) | {"folder": str(folder)}))
        return EXIT_OK if found else EXIT_INCONCLUSIVE
    for commit, judgement in bisection.judged:
        click.echo(f"{judgement:4}  {repository.describe(commit)}")
    click.echo(f"Results: {folder}")
    if found:
        click.echo(f"The first bad commit is {repository.describe(bisection.suspects[0])}")
        return EXIT_OK
    click.echo("The first bad commit is one of these, of which only the first could be judged:")
    for commit in bisection.suspects:
        click.echo(f"  {repository.describe(commit)}")
    return EXIT_INCONCLUSIVE


@click.command("bisect-step")
@click.option("--against", required=True, metavar="KERNEL|REV",
              help="The good kernel: a revision, a pinned kernel, or one of yours.")  # fmt: skip
@_bisect_options
@pass_services
def bisect_step(services: Services, /, against: str, git: Path, **chosen: Any) -> int:
    """Judge the work tree as it is, for git bisect run.

    In the kernel's tree: git bisect run FIRSTFLIGHT/run.sh kernel bisect-step --against v7.2
    page=amazon,rtt_ms=20

    Exit code: 0 good, 1 bad, 125 it cannot be judged, 128 and up: git bisect run has to stop.
    """
    with scratch_folder("kernel") as folder:
        search = _search(services, folder, git, **chosen)
        known = against in pins() or against in own_kernels(places.data())
        try:
            search.begin(against if known else search.define(against))
        except (BuildError, PatchError, TrialError) as error:
            raise MissingError(f"--against {against}: {error}") from None
        return _VERDICTS[search.judge(None)]


def _search(services: Services, folder: Path, git: Path, *, base: str | None, cells: str | None,
            promises: tuple[str, ...], selftests: tuple[str, ...], packetdrill: Path | None,
            no_store: bool, **chosen: Any) -> _Search:  # fmt: skip
    by_cells = bool(cells or chosen["only"] or chosen["any_packet"] or chosen["least_pct"])
    if by_cells + bool(promises) + bool(selftests) > 1:
        raise ConfigurationError(
            ["--promise, --selftest, and CELLS, --only, --any or --threshold: a bisection is by "
             "one of promises, selftests and page loads"]
        )  # fmt: skip
    measure: Measure
    if promises:
        scenarios = choose_scenarios(promises, services.catalogue())
        measure = PromiseMeasure(services, no_store, scenarios)
    elif selftests:
        cache = services.cache()
        drill = find_packetdrill(packetdrill, cache, _log.info)
        measure = SelftestMeasure(selftests, drill, cache)
    else:
        measure = _cells(services, no_store, cells, **chosen)
    return _Search(services, measure, git, base, folder)


def _cells(services: Services, no_store: bool, cells: str | None, *, experiment: Path,
           least_pct: float, any_packet: bool, metric: Metric,
           **chosen: Any) -> CellMeasure:  # fmt: skip
    if cells is not None and chosen["only"]:
        raise ConfigurationError([f"CELLS {cells} and --only {chosen['only']}: give one of them"])
    choice = Choice(config=experiment, **{**chosen, "only": cells or chosen["only"]})
    choice.load(services.catalogue())  # what is wrong is said before anything is built
    rule = FailRule("any" if any_packet else "slower", least_pct)
    return CellMeasure(services, no_store, choice, rule, metric)
