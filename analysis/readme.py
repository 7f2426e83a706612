"""Tables of the README, and a ladder of the documents, made of the committed results they show.

A table is between ``<!-- table: NAME -->`` and ``<!-- end -->``; ``make readme`` writes all of them
anew, each with the revision and the environment that gave it, and the endings in STATUS.md.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.kinds.scenario.ladder import draw_ladder
from analysis.kinds.scenario.promises import key_of
from analysis.records.cells import Cell, cells_of
from analysis.records.kind import find_metric
from analysis.records.results import Results, read_results
from analysis.report.document import find_reference
from analysis.report.terminal import table_columns
from analysis.reproductions.cs244_reuse import average_pairs
from analysis.reproductions.sweep import plain, proven_loads
from analysis.reproductions.tum_website import MECHANISMS, NEITHER, medians, with_savings
from analysis.status import STATUS, render_status
from analysis.tables.columns import Column, align, render_columns
from analysis.tables.table import ResultTable, make_table
from analysis.verdicts.baseline import read_facts
from analysis.words import axis_value, count, number, seconds
from testbed.base.errors import ConfigurationError
from testbed.base.whole_file import write_whole

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
LADDER = ROOT / "docs" / "images" / "cached-cookie.svg"
"""The ladder of the scenario of that name."""
WIDTH = 100
"""Characters of a table that a page shows without scrolling."""
OPENING_AXES = ("protocol", "tls_resumption", "early_data", "tfo")
OPENINGS = {
    "HTTP/1.1": ("h1", False, False, False),
    "HTTP/1.1 + Fast Open": ("h1", False, False, True),
    "HTTP/2": ("h2", False, False, False),
    "HTTP/2, tickets": ("h2", True, False, False),
    "  early data": ("h2", True, True, False),
    "  early data + Fast Open": ("h2", True, True, True),
    "HTTP/3": ("h3", True, False, False),
    "HTTP/3, 0-RTT": ("h3", True, True, False),
}
"""The mechanisms of zero-rtt by OPENING_AXES."""
KEY_SHARES = {"x25519mlkem768": "post-quantum", "x25519": "X25519"}
_BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A table of the README: the folder with its results, its lines, and a sentence on them."""

    folder: str
    lines: Callable[[Results], list[str]]
    sentence: Callable[[Results], str] = lambda _: ""


def render_readme(text: str, root: Path = ROOT) -> str:
    """Return ``text`` with each of its tables as the committed results below ``root`` give it.

    Raises:
        ConfigurationError: a table that is not one of TABLES, or one of these is not in the text.
        StorageError: its results cannot be read.
    """
    named = [match[2] for match in _BLOCK.finditer(text)]
    problems = [f"README: no table is called {name}" for name in named if name not in TABLES]
    problems += [f"README: the table {name} is missing" for name in TABLES if name not in named]
    if problems:
        raise ConfigurationError(problems)
    return _BLOCK.sub(lambda match: f"{match[1]}{_block(TABLES[match[2]], root)}{match[3]}", text)


def _block(shown: Shown, root: Path) -> str:
    results = read_results(root / shown.folder)
    lines = "\n".join(shown.lines(results))
    sentence = shown.sentence(results)
    caption = f"{describe_origin(results)}: `{shown.folder}`."
    return f"```\n{lines}\n```\n\n{f'{sentence} ' if sentence else ''}{caption}\n"


def describe_origin(results: Results) -> str:
    """Return how many loads there are, and the revision and environment that gave them."""
    facts: Mapping[str, str] = dict(read_facts(results.manifest))
    changed = " with changes" if facts.get("git_dirty") == "yes" else ""
    known = results.identity
    clients = ", ".join(f"{name} {version}" for name, version in known.clients.items())
    return (
        f"{count(len(results.records), 'load')} at revision "
        f"{facts.get('git_revision', 'unknown')[:12]}{changed}, environment {known.environment}, "
        f"Linux {known.kernel_version}, {clients}"
    )


def _table(results: Results) -> ResultTable:
    return make_table(cells_of(results), find_reference(results))


def _whole_table(results: Results) -> list[str]:
    return render_columns(table_columns(_table(results)), WIDTH)


def _mean_gain(results: Results) -> str:
    pairs = _table(results).pairs
    ours = [pair.improvement_pct.median for pair in pairs if pair.improvement_pct]
    stated = [pair.paper.improvement_pct for pair in pairs if pair.paper]
    paints = [
        pair.improvement_pct.median
        for pair in make_table(cells_of(results, find_metric("fcp_ms")), None).pairs
        if pair.improvement_pct
    ]
    return (
        f"The mean gain is {number(statistics.fmean(ours), 1)} %, that of the paper's rows "
        f"{number(statistics.fmean(stated), 1)} %. A visitor sees more of it: the first "
        f"contentful paint comes {number(min(paints), 1)} to {number(max(paints), 1)} % sooner, "
        f"{number(statistics.fmean(paints), 1)} % in the mean ([how](docs/visitor.md))."
    )


def _website(results: Results) -> list[str]:
    """Return a row for each RTT: the load time with neither, and what each mechanism saves."""
    arms = medians(with_savings(proven_loads(results)))
    table = arms.pivot(index="rtt_ms", columns="mechanism", values=["plt_s", "improvement"])
    saved = table["improvement"]
    return align([
        Column("RTT", [axis_value("rtt_ms", rtt_ms) for rtt_ms in table.index]),
        Column(NEITHER, [f"{value:.3f} s" for value in table["plt_s", NEITHER]]),
        *(Column(name, [f"{number(value, 1)} %" for value in saved[name]]) for name in MECHANISMS),
    ])  # fmt: skip


def _reuse(results: Results) -> list[str]:
    """Return a row for each page and RTT: seconds off and on, and gain, by resources."""
    rows = average_pairs(_table(results).pairs)
    rows = rows.assign(place=rows.groupby(["page", "rtt_ms"], sort=False).ngroup())
    first = rows.drop_duplicates("place")
    columns = [
        Column("page", list(first["page"]), left=True),
        Column("RTT", [axis_value("rtt_ms", rtt_ms) for rtt_ms in first["rtt_ms"]]),
    ]
    for reuse, chosen in rows.sort_values("place", kind="stable").groupby("reuse"):
        columns += [
            Column(head, [number(plain(value), places) for value in chosen[name]])
            for head, name, places in (
                (f"{reuse:g}: off s", "off_s", 3),
                ("on s", "on_s", 3),
                ("gain %", "improvement_pct", 1),
            )
        ]
    return align(columns)


def _openings(results: Results) -> list[str]:
    """Return a row for each mechanism: seconds by key share and RTT, of the first page."""
    cells = _of_first_page(results)
    found = {
        (tuple(map(cell.axes.get, OPENING_AXES)), cell.axes["key_share"], cell.axes["rtt_ms"]): cell
        for cell in cells
    }
    columns = [Column("mechanism", list(OPENINGS), left=True)]
    for keys, words in KEY_SHARES.items():
        rtts = sorted({rtt_ms for _, share, rtt_ms in found if share == keys})
        for rtt_ms in rtts:
            head = axis_value("rtt_ms", rtt_ms)
            asked = (found.get((opening, keys, rtt_ms)) for opening in OPENINGS.values())
            medians_ms = (cell.spread.median if cell and cell.spread else None for cell in asked)
            columns.append(
                Column(
                    f"{words}: {head}" if rtt_ms == rtts[0] else head,
                    list(map(seconds, medians_ms)),
                )
            )
    return align(columns)


def _openings_sentence(results: Results) -> str:
    cells = _of_first_page(results)
    seeds = max(len(cell.by_seed) for cell in cells)
    return (
        f"Load time of the second visit to {cells[0].axes['page']} in seconds by RTT: "
        f"{f'medians of {seeds} seeds' if seeds > 1 else 'one seed'}. Chromium's key shares are "
        "post-quantum (X25519MLKEM768); with X25519 alone it is a *modified browser*."
    )


def _of_first_page(results: Results) -> list[Cell]:
    cells = cells_of(results)
    return [cell for cell in cells if cell.axes["page"] == cells[0].axes["page"]]


TABLES: dict[str, Shown] = {
    "paper-table1": Shown("analysis/baselines/paper-table1", _whole_table, _mean_gain),
    "zero-rtt": Shown("analysis/samples/zero-rtt", _openings, _openings_sentence),
    "tum-website": Shown("analysis/samples/tum-website", _website),
    "cs244-reuse": Shown("analysis/samples/cs244-reuse", _reuse),
}


def draw_committed_ladder(root: Path = ROOT) -> str:
    """Return the ladder of the documents as the committed results below ``root`` give it."""
    results = read_results(root / "analysis" / "samples" / "scenarios")
    record = next(each for each in results.records if key_of(each)[0] == LADDER.stem)
    return draw_ladder(results.folder, record).draw() + "\n"


if __name__ == "__main__":
    write_whole(LADDER, draw_committed_ladder(), f"{LADDER.name} is as it was")
    written = render_readme(README.read_text(encoding="utf-8"))
    write_whole(README, written, "README.md is as it was")
    endings = render_status(STATUS.read_text(encoding="utf-8"))
    write_whole(STATUS, endings, "STATUS.md is as it was")
