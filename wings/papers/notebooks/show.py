"""Results in notebooks: where they are read from, and shown as frames, tables and charts.

Units are in the column names; frames are not rounded, and tables are as in a report.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from analysis import plot
from analysis.plot.ladder import Ladder
from analysis.records.cells import (
    Spread,
    cells_of,
    describe_absence,
    experiment_of,
    flatten,
    varying_axes,
)
from analysis.records.kind import find_metric, records_of
from analysis.records.results import Results, judge, read_results
from analysis.report.evidence import calibrations
from analysis.report.kind import report_of
from analysis.report.publications import Grid, Rebuilt
from analysis.tables.table import make_table
from analysis.words import MISSING, count, significant
from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import read_lanes
from testbed.model import Record, stored_kind
from testbed.results.folder import LATEST, read_manifest
from testbed.results.manifest import MANIFEST_FILE
from wings.papers.publications import find, rebuild
from wings.papers.reproductions.lanes import draw_lanes, name_lanes
from wings.scenarios.analysis.ladder import draw_ladder
from wings.scenarios.analysis.promises import key_of, make_promises

VARIABLE = "FIRSTFLIGHT_RESULTS"
NOTHING = "nothing"
SAMPLES = places.ROOT / "analysis" / "samples"
BASELINES = places.ROOT / "analysis" / "baselines"
COMMITTED = (BASELINES, SAMPLES)


def open_results(
    experiment: str,
    latest: Path = places.RESULTS / LATEST,
    committed: Sequence[Path] = COMMITTED,
) -> Results:
    """Read results of ``experiment`` and print which they are.

    They are in the folder that the environment variable FIRSTFLIGHT_RESULTS names, or in a folder
    of the experiment's name in that; without the variable in ``latest``.  Where that is of another
    experiment they are those that ship with the repository, by the first folder of ``committed``.

    Raises:
        ConfigurationError: the folder named holds no results, none of this experiment are committed
            (the message lists those that are), or records must not be pooled.
        StorageError: the folder cannot be read.
    """
    folder, why = _choose(experiment, latest, committed)
    results = read_results(folder)
    print(describe_results(results, why))
    return results


def describe_results(results: Results, why: str) -> str:
    """Return three lines: which folder and why, measured by what, and how much of it."""
    cells, identity = cells_of(results), results.identity
    proven = [len(cell.proven) for cell in cells]
    ends = dict.fromkeys((min(proven, default=0), max(proven, default=0)))
    clients = ", ".join(f"{name} {version}" for name, version in identity.clients.items())
    planned = sum(cell.planned for cell in cells)
    experiment = experiment_of(results.manifest)
    kind = report_of(stored_kind(experiment))
    client = f"client {clients or 'unknown'}, " if kind.names_client else ""
    spread = f" in {count(len(cells), 'cell')}, n = {' to '.join(map(str, ends))} in each"
    return (
        f"{experiment.get('name')}: {_shown(results.folder)} ({why})\n"
        f"{identity.kernel} kernel {identity.kernel_version}, {client}"
        f"of {results.manifest.get('created_utc', 'an unknown time')}\n"
        f"{sum(proven)} of {count(planned, kind.trial)} proven{spread * kind.spreads}"
    )


def rebuilt(results: Results) -> Rebuilt:
    """Return tables, figures and checks of the publication that the experiment refers to.

    Raises:
        ConfigurationError: it refers to none.
    """
    publication = rebuild(results)
    if publication is None:
        raise ConfigurationError([f"{results.folder} rebuilds no publication"])
    return publication


def side_by_side(results: Results, *others: str | Path) -> Rebuilt:
    """Return the figure of loads on a server with the same of other kernels in it.

    ``others`` are results folders, from the repository's own if they are relative.

    Raises:
        ConfigurationError: one is of another experiment, or of no loads on a server.
        StorageError: one cannot be read.
    """
    every = [results, *(read_results(places.ROOT / folder) for folder in others)]
    return draw_lanes(name_lanes(every))


def figure(publication: Rebuilt, name: str) -> plot.Plot:
    """Return the chart of the figure ``name``.

    Raises:
        ConfigurationError: there is none of that name; the message lists the names.
    """
    charts = {drawing.name: drawing.chart for drawing in publication.figures}
    if name not in charts:
        known = ", ".join(charts) or "none"
        raise ConfigurationError([f"no figure {name!r} was rebuilt; there are: {known}"])
    return charts[name]


def grid(table: Grid) -> Styler:
    """Return a rebuilt table as a report has it."""
    return _styled(pd.DataFrame(table.rows, columns=list(table.columns)), table.title)


def checks(publication: Rebuilt) -> Styler:
    """Return what the publication states beside ours, and why they differ where they do."""
    lane = ["lane"] if any(check.lane for check in publication.checks) else []
    names = ["where", "what", "stated", *lane, "ours", "agreement", "why"]
    rows = [[getattr(check, name) for name in names] for check in publication.checks]
    return _styled(
        pd.DataFrame(rows, columns=[name.capitalize() for name in names]), publication.title
    )


def differences(results: Results) -> Styler:
    """Return what differs from the publication that the experiment refers to, and why.

    Raises:
        ConfigurationError: it refers to none.
    """
    reference = find(results)
    if reference is None:
        raise ConfigurationError([f"{results.folder} refers to no publication"])
    rows = [[difference.what, difference.why] for difference in reference.differences]
    return _styled(pd.DataFrame(rows, columns=["Difference", "Why"]), reference.citation)


def savings(results: Results) -> pd.DataFrame:
    """Return what Fast Open saves, one row for each condition, as in Table 1 of its paper.

    Columns: the swept knobs; ``improvement_pct``, ``plt_off_s`` and ``plt_on_s``, medians over the
    ``n`` seeds that are proven both ways; the same with ``paper_``, NaN if it was not published.
    """
    cells = cells_of(results)
    table = make_table(cells, find(results))
    swept = [
        name for name in table.axes if name in (*records_of(table.kind).axes, *varying_axes(cells))
    ]
    rows = [{**{name: pair.axes.get(name) for name in swept},
             "improvement_pct": _median(pair.improvement_pct),
             "paper_improvement_pct": pair.paper.improvement_pct if pair.paper else math.nan,
             "plt_off_s": _median(pair.spread_off, 1000.0),
             "plt_on_s": _median(pair.spread_on, 1000.0),
             "paper_plt_off_s": pair.paper.plt_off_s if pair.paper else math.nan,
             "paper_plt_on_s": pair.paper.plt_on_s if pair.paper else math.nan,
             "n": len(pair.seeds)} for pair in table.pairs]  # fmt: skip
    return pd.DataFrame(rows)


def gains(results: Results, *metrics: str) -> pd.DataFrame:
    """Return what Fast Open saves by each of ``metrics``, one row for each condition.

    Columns: the swept knobs; for a metric ``fcp_ms`` the medians ``fcp_off_ms`` and ``fcp_on_ms``
    over the seeds that have it both ways, and the gain ``fcp_improvement_pct``.

    Raises:
        ConfigurationError: there is no such metric, or no load has it.
    """
    wanted = [find_metric(name) for name in metrics]
    for metric in wanted:
        cells = cells_of(results, metric)
        absent = describe_absence(cells)
        if absent and not any(cell.by_seed for cell in cells):
            raise ConfigurationError(absent)
    table = make_table(cells_of(results), None)
    rows = []
    for pair in table.pairs:
        row: dict[str, Any] = {name: pair.axes.get(name) for name in table.axes}
        for metric in wanted:
            metric_pair = pair.by(metric)
            row[metric.column("off")] = _median(metric_pair.spread_off)
            row[metric.column("on")] = _median(metric_pair.spread_on)
            row[metric.column("improvement", unit="pct")] = _median(metric_pair.improvement_pct)
        rows.append(row)
    return pd.DataFrame(rows)


def proofs(results: Results) -> pd.DataFrame:
    """Return a row for each load with a proof: counts from its packet capture and counters.

    Columns: the knobs, ``outcome``, then the counts of ``testbed.model.Proof``.
    """
    counts = ("connections", "syns", "syns_with_payload", "syn_payload_bytes", "cookie_requests",
              "syn_data_acked", "retransmits", "server_retransmits")  # fmt: skip
    return pd.DataFrame([
        {
            **flatten(record.trial.condition),
            "outcome": judge(record)[0],
            **{name: getattr(record.proof, name) for name in counts},
        }
        for cell in cells_of(results) for record in cell.records if record.proof is not None
    ])  # fmt: skip


def calibration(results: Results) -> pd.DataFrame:
    """Return what the labs measured of themselves before each load, beside arithmetic.

    Columns: ``rtt_ms``, ``down_kbit``, ``up_kbit``, ``buffer_bytes`` of the link, ``property`` and
    its ``unit``, the medians ``theory`` and ``measured`` in it, ``worst_error_pct``, and
    ``tolerance_pct``.
    """
    names = ("rtt_ms", "down_kbit", "up_kbit", "buffer_bytes")
    rows = [{**{name: getattr(quantity.link, name) for name in names}, "property": quantity.name,
             "unit": quantity.unit, "theory": quantity.theory.median,
             "measured": quantity.measured.median, "worst_error_pct": quantity.worst_error_pct,
             "tolerance_pct": quantity.tolerance_pct}
            for quantity in calibrations(results.records)]  # fmt: skip
    return pd.DataFrame(rows)


def promises(results: Results) -> Styler:
    """Return the table of promises: what became of each, and why it is not kept if it is not."""
    table = make_promises([results])
    rows = [[row.name, row.promise.title, row.promise.source, finding.words, row.says(finding)]
            for row in table.rows for finding in row.findings]  # fmt: skip
    names = ("Scenario", "Promise", "Source", "Verdict", "Why")
    return _styled(pd.DataFrame(rows, columns=list(names)), table.title)


def scenario(results: Results, name: str) -> Ladder:
    """Return the ladder diagram of the scenario ``name``.

    Raises:
        ConfigurationError: the results hold none of that name (the message lists those that they
            hold), or it was not performed.
    """
    return draw_ladder(results.folder, _performed(results, name))


def script(results: Results, name: str) -> None:
    """Print the script of the scenario ``name``: what is done, and which packets are expected.

    Raises:
        ConfigurationError: the results hold none of that name.
    """
    _, text = key_of(_performed(results, name))
    print(tomllib.loads(text)["steps"].strip())


def packets(results: Results, name: str) -> pd.DataFrame:
    """Return the packets of the scenario ``name`` as rows, in the order of sending.

    Columns: ``sent_ms`` since the first packet, ``sender``, ``label`` as in the ladder,
    ``connection``, and ``arrived_ms``, NaN if it was lost.

    Raises:
        ConfigurationError: as ``scenario``.
    """
    rows = [{"sent_ms": rung.sent_ms, "sender": rung.sender, "label": rung.label,
             "connection": rung.connection,
             "arrived_ms": rung.landings[0].at_ms if rung.landings else math.nan}
            for rung in scenario(results, name).exchange.rungs]  # fmt: skip
    return pd.DataFrame(rows)


def _performed(results: Results, name: str) -> Record:
    records = {key_of(record)[0]: record for record in results.records}
    if name not in records:
        known = ", ".join(records) or "none"
        raise ConfigurationError([f"no scenario {name!r} in {results.folder}; it holds: {known}"])
    return records[name]


def _median(spread: Spread | None, divisor: float = 1.0) -> float:
    return spread.median / divisor if spread else math.nan


def _styled(frame: pd.DataFrame, title: str) -> Styler:
    """Return ``frame`` without an index, with numbers as they are and text on the left."""
    return (
        frame.style.hide(axis="index")
        .set_caption(title)
        .format(_text, escape="html")
        .set_table_styles([{"selector": "th, td, caption", "props": "text-align: left"}])
    )


def _text(value: Any) -> str:
    if pd.isna(value):
        return MISSING
    return value if isinstance(value, str) else significant(value)


def _choose(experiment: str, latest: Path, committed: Sequence[Path]) -> tuple[Path, str]:
    """Return the folder to read, and why this one."""
    named = os.environ.get(VARIABLE)
    if named:
        for folder in (Path(named) / experiment, Path(named)):
            if _held(folder) == experiment:
                return folder, f"named by {VARIABLE}"
        inside = sorted(path.parent.name for path in Path(named).glob(f"*/{MANIFEST_FILE}"))
        held = ", ".join(inside) or _held(Path(named))
        if held == NOTHING:
            raise ConfigurationError(
                [f"{VARIABLE} names {named}, which holds no results: name a folder with some, or "
                 f"unset {VARIABLE}"]
            )  # fmt: skip
        elsewhere = f"{VARIABLE} names {named}, which holds {held}"
    else:
        held = _held(latest)
        if held == experiment:
            return latest.resolve(), "results/latest"
        elsewhere = f"results/latest holds {held}"
    folders = [path.parent for folder in committed for path in folder.glob(f"*/{MANIFEST_FILE}")]
    for folder in folders:
        if folder.name == experiment:
            return folder, f"the repository's own; {elsewhere}"
    known = ", ".join(sorted({folder.name for folder in folders}))
    raise ConfigurationError(
        [f"there are no results of {experiment}: {elsewhere}, and committed are "
         f"{known or 'none'}; ./run.sh run configs/{experiment}.toml makes some"]
    )  # fmt: skip


def _held(folder: Path) -> str:
    """Return the experiment in ``folder``, or a word for a message if there is none."""
    if read_lanes(folder):
        return "several kernels' results"
    if not (folder / MANIFEST_FILE).is_file():
        return NOTHING
    return str(experiment_of(read_manifest(folder)).get("name"))


def _shown(folder: Path) -> str:
    inside = folder.is_relative_to(places.ROOT)
    return str(folder.relative_to(places.ROOT) if inside else folder)
