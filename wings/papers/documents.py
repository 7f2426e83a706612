"""Tables and drawings of published and committed results in the README and the documents."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

import pandas as pd

from analysis.formats import markdown
from analysis.plot.chart import draw
from analysis.readme import Tables
from analysis.records.cells import cells_of, experiment_of, facts_of
from analysis.records.kind import find_metric
from analysis.records.results import Results, read_results
from analysis.report.publications import Agreement, StatedCheck
from analysis.report.terminal import table_columns
from analysis.tables.columns import Column, align, render_columns
from analysis.tables.table import ResultTable, make_table
from analysis.words import MISSING, axis_value, count, number, seconds
from testbed.base.places import ROOT
from testbed.results.manifest import read_manifest
from wings.papers.publications import find, rebuild
from wings.papers.published.coverage import render_coverage
from wings.papers.published.reference import read_reference
from wings.papers.reproductions import mechanisms
from wings.papers.reproductions.cs244_reuse import average_pairs
from wings.papers.reproductions.reuse_initcwnd import REUSE, WINDOW
from wings.papers.reproductions.sweep import plain, proven_loads
from wings.papers.reproductions.tum_website import MECHANISMS, NEITHER, medians, with_savings
from wings.server_loads.price_list import ORIGINS, PARTS, connection_price, list_prices_us
from wings.server_loads.spec import ServerSpec

README = ROOT / "README.md"
ZERO_RTT = ROOT / "docs" / "zero-rtt.md"
COVERAGE = ROOT / "docs" / "coverage-of-sources.md"
ACCURACY = ROOT / "docs" / "accuracy.md"
LINKS = ROOT / "docs" / "links.md"
PAPERS = ROOT / "wings" / "papers" / "README.md"
OVERLOAD = ROOT / "wings" / "papers" / "docs" / "overload.md"
TCP = ROOT / "wings" / "papers" / "docs" / "tcp.md"
SERVER_LOADS = ROOT / "wings" / "server_loads" / "README.md"
COMMITTED = Path("analysis", "committed-results.txt")
OPENED = ROOT / "docs" / "images" / "early-data.svg"
"""How connections of a visit were opened, by mechanisms with early data."""
WIDTH = 100
"""Characters of a table that a page shows without scrolling."""
SHOWN_RTT_MS = 100.0
"""The round trip of what a document shows in detail."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A table of a page: the folder with its results, its lines, and a sentence on them.

    Lines that are not ``fenced`` are Markdown.
    """

    folder: str
    lines: Callable[[Results], list[str]]
    sentence: Callable[[Results], str] = lambda _: ""
    fenced: bool = True


def _block(shown: Shown, root: Path) -> str:
    results = read_results(root / shown.folder)
    lines = "\n".join(shown.lines(results))
    table = f"```\n{lines}\n```" if shown.fenced else lines
    sentence = shown.sentence(results)
    caption = f"{describe_origin(results)}: `{shown.folder}`."
    return f"{table}\n\n{f'{sentence} ' if sentence else ''}{caption}\n"


def describe_origin(results: Results) -> str:
    """Return how many loads there are, and the revision and environment that gave them."""
    facts = facts_of(results.manifest)
    changed = " with changes" if facts.get("git_dirty") == "yes" else ""
    known = results.identity
    return ", ".join((
        f"{count(len(results.records), 'load')} at revision "
        f"{facts.get('git_revision', 'unknown')[:12]}{changed}", f"environment {known.environment}",
        f"Linux {known.kernel_version}", *(f"{name} {version}"
                                           for name, version in known.clients.items())
    ))  # fmt: skip


def list_reproductions(root: Path) -> str:
    """Return a row for each committed experiment of a publication: how many claims come to what."""
    verdicts = get_args(Agreement)
    rows = []
    for folder in _published_there(root):
        results = read_results(root / folder)
        reference = find(results)
        came = Counter(check.agreement for check in _checks(results))
        rows.append([f"`{experiment_of(results.manifest)['name']}`",
                     markdown.escape(reference.citation if reference else MISSING),
                     *map(str, (len(results.records), _seeds(results), came.total(),
                                *(came[verdict] for verdict in verdicts)))])  # fmt: skip
    numbers = ["loads", "seeds", "claims", *verdicts]
    return "\n".join([*markdown.make_table(["config", "source", *numbers], rows, numbers), ""])


def _published_there(root: Path) -> Iterator[Path]:
    """Yield the committed folders of experiments that publications state values of, each once."""
    known = set()
    for line in (root / COMMITTED).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            folder = Path("analysis", *line.split()[:2])
            name = str(experiment_of(dict(read_manifest(root / folder))).get("reference") or "")
            if name and folder.name not in known and _states(name):
                known.add(folder.name)
                yield folder


def _states(name: str) -> bool:
    reference = read_reference(name)
    return bool(reference.stated or reference.claims)


def _checks(results: Results) -> tuple[StatedCheck, ...]:
    rebuilt = rebuild(results)
    return rebuilt.checks if rebuilt else ()


def _claims(results: Results) -> list[str]:
    """Return a row for each claim: what is stated, what came, and the verdict."""
    rows = [[*map(markdown.escape, (check.where, check.what, check.stated, check.ours)),
             check.agreement] for check in _checks(results)]  # fmt: skip
    return markdown.make_table(["place", "claim", "stated", "ours", "verdict"], rows)


def _show_claims(name: str) -> Shown:
    return Shown(f"analysis/samples/{name}", _claims, fenced=False)


def _reuse_and_window(results: Results) -> list[str]:
    """Return a row for how many requests a connection carries: seconds by window, off and on."""
    loads = proven_loads(results).sort_values([WINDOW, "tfo"], kind="stable")
    carried = list(loads[REUSE].unique())
    columns = [Column("requests on each", [axis_value(REUSE, plain(each)) for each in carried])]
    for (window, on), arm in loads.groupby([WINDOW, "tfo"]):
        times = arm.set_index(REUSE)["plt_ms"]
        head = "on s" if on else f"window {window}: off s"
        columns.append(Column(head, [seconds(plain(times.get(each))) for each in carried]))
    return align(columns)


def _calibration(results: Results) -> list[str]:
    """Return a row for what is measured of each lab: how far it is from theory at the most."""
    errors: dict[str, list[float]] = {}
    for record in results.records:
        for each in record.lab.measurements if record.lab else ():
            error_pct = 100 * abs(each.measured - each.theory) / each.theory
            errors.setdefault(each.name.replace("_", " "), []).append(error_pct)
    return align([
        Column("of each lab", list(errors), left=True),
        Column("largest error", [f"{max(found):.4f} %" for found in errors.values()]),
    ])  # fmt: skip


def list_prices(_: Path) -> str:
    """Return the price lists of a server's work, in us, and what share of a connection a SYN is."""
    lists = [list_prices_us(replace(ServerSpec(), prices=name)) for name in ORIGINS]
    shares = [100 * prices["syn"] / connection_price(prices) for prices in lists]
    lines = align([
        Column("us", list(ORIGINS), left=True),
        *(Column(part, [number(prices[part], 1) for prices in lists]) for part in PARTS),
        Column("a SYN, of a connection", [f"{number(share, 1)} %" for share in shares]),
    ])  # fmt: skip
    return "\n".join(["```", *lines, "```", ""])


def _table(results: Results) -> ResultTable:
    return make_table(cells_of(results), find(results))


def _whole_table(results: Results) -> list[str]:
    return render_columns(table_columns(_table(results)), WIDTH)


def _mean_gain(results: Results) -> str:
    pairs = _table(results).pairs
    ours = [pair.improvement_pct.median for pair in pairs if pair.improvement_pct]
    stated = [pair.paper.improvement_pct for pair in pairs if pair.paper]
    paints = [pair.improvement_pct.median
              for pair in make_table(cells_of(results, find_metric("fcp_ms")), None).pairs
              if pair.improvement_pct]  # fmt: skip
    return (
        f"The mean gain is {number(statistics.fmean(ours), 1)} %, in the paper "
        f"{number(statistics.fmean(stated), 1)} %. A visitor gains more: the first contentful "
        f"paint comes {number(min(paints), 1)} to {number(max(paints), 1)} % sooner, on average "
        f"{number(statistics.fmean(paints), 1)} % ([how](docs/visitor.md))."
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
        columns += [Column(head, [number(plain(value), places) for value in chosen[name]])
                    for head, name, places in ((f"{reuse:g}: off s", "off_s", 3),
                                               ("on s", "on_s", 3),
                                               ("gain %", "improvement_pct", 1))]  # fmt: skip
    return align(columns)


def _zero_rtt(results: Results) -> list[str]:
    """Return a row for each mechanism: seconds by key share and RTT."""
    found = mechanisms.medians(results)
    columns = [_mechanisms()]
    for share, words in mechanisms.KEY_SHARES.items():
        chosen = found[found["key_share"] == share]
        for place, (rtt_ms, rows) in enumerate(chosen.groupby("rtt_ms")):
            head = axis_value("rtt_ms", rtt_ms)
            texts = _by_mechanism(rows, "plt_ms", seconds)
            columns.append(Column(f"{words}: {head}" if place == 0 else head, texts))
    return align(columns)


def _zero_rtt_in_detail(results: Results) -> list[str]:
    """Return a row for each mechanism at one RTT: seconds, and what opening connections took."""
    found = mechanisms.medians(results)
    found = found[found["rtt_ms"] == SHOWN_RTT_MS]
    shares = {share: found[found["key_share"] == share] for share in mechanisms.KEY_SHARES}
    large = shares[mechanisms.LARGE]
    return align([
        _mechanisms(),
        *(Column(f"{mechanisms.KEY_SHARES[share]} s", _by_mechanism(rows, "plt_ms", seconds))
          for share, rows in shares.items()),
        Column("connections", _by_mechanism(large, "connections", partial(number, places=0))),
        Column("bytes of hellos", _by_mechanism(large, "hello_bytes", "{:,.0f}".format)),
        Column("round trips", _by_mechanism(large, "round_trips", partial(number, places=1))),
    ])  # fmt: skip


def _mechanisms() -> Column:
    return Column("mechanism", list(mechanisms.MECHANISMS.values()), left=True)


def _by_mechanism(rows: pd.DataFrame, column: str, text: Callable[[float], str]) -> list[str]:
    values = rows.set_index("mechanism")[column].dropna()
    names = mechanisms.MECHANISMS.values()
    return [text(values[name]) if name in values else MISSING for name in names]


def _zero_rtt_sentence(results: Results) -> str:
    return (
        f"Load time of the second visit to {_page(results)} in seconds by RTT: medians of "
        f"{_seeds(results)} seeds. Chromium's key shares are post-quantum (X25519MLKEM768); with "
        "X25519 alone it is a *modified browser*."
    )


def _detail_sentence(results: Results) -> str:
    return (
        f"Second visits to {_page(results)} at a round trip of {SHOWN_RTT_MS:g} ms: medians of "
        f"{_seeds(results)} seeds. The three columns on the right are with post-quantum keys; "
        "round trips are those before the first request, with one for the name look-up."
    )


def _page(results: Results) -> str:
    return str(cells_of(results)[0].axes["page"])


def _seeds(results: Results) -> int:
    return max(len(cell.by_seed) for cell in cells_of(results))


TABLES: Mapping[Path, Mapping[str, Shown]] = {
    README: {
        "paper-table1": Shown("analysis/baselines/paper-table1", _whole_table, _mean_gain),
        "zero-rtt": Shown("analysis/samples/zero-rtt", _zero_rtt, _zero_rtt_sentence),
        "tum-website": Shown("analysis/samples/tum-website", _website),
        "cs244-reuse": Shown("analysis/samples/cs244-reuse", _reuse),
    },
    ZERO_RTT: {
        "zero-rtt": Shown("analysis/samples/zero-rtt", _zero_rtt_in_detail, _detail_sentence)
    },
    ACCURACY: {"calibration": Shown("analysis/baselines/paper-table1", _calibration)},
    LINKS: {name: _show_claims(name)
            for name in ("bufferbloat", "queue-or-sender", "fast-open-today", "from-orbit")},
    PAPERS: {
        **{name: _show_claims(name)
           for name in ("paper-handshake-share", "paper-fig6-server-cpu", "paper-fig6-host",
                        "paper-closed-loop", "cs244-reuse", "tum-initcwnd", "tum-website")},
        "reuse-initcwnd": Shown("analysis/samples/reuse-initcwnd", _reuse_and_window),
    },
    OVERLOAD: {name: _show_claims(name)
               for name in ("overload-establishment", "overload-windows-clients",
                            "overload-termination", "overload-segments", "overload-bursts",
                            "overload-clients", "overload-wan")},
    TCP: {"rto-min": _show_claims("rto-min")},
}  # fmt: skip
"""Of each page its tables of results."""
FURTHER: Mapping[Path, Tables] = {
    COVERAGE: {"coverage": render_coverage},
    PAPERS: {"reproductions": list_reproductions},
    SERVER_LOADS: {"prices": list_prices},
}
"""Of each page its tables that are of several results, or of none."""
PAGES: Mapping[Path, Tables] = {
    page: {**{name: partial(_block, shown) for name, shown in TABLES.get(page, {}).items()},
           **FURTHER.get(page, {})}
    for page in dict.fromkeys((*TABLES, *FURTHER))
}  # fmt: skip


def draw_committed_openings() -> str:
    """Return how connections were opened with early data, by the committed results."""
    results = read_results(ROOT / "analysis" / "samples" / "zero-rtt")
    return draw(mechanisms.draw_early(results, SHOWN_RTT_MS)) + "\n"


DRAWINGS: Mapping[Path, Callable[[], str]] = {OPENED: draw_committed_openings}
