"""Prices of computing in virtual time: what they are, and which claims depend on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from analysis.records.cells import experiment_of
from analysis.records.results import Results
from analysis.report.publications import Grid, StatedCheck
from analysis.words import clean
from testbed.model import in_real_time
from wings.server_loads.price_list import ORIGINS

PRICED = (
    "In virtual time computing is priced by a model: its prices are {} "
    "(wings/server_loads/README.md)."
)
LIST = "prices"
PART_WORDS = {"syn": "a SYN", "segment": "a segment", "accept": "an accept", "request": "a request",
              "close": "a close"}  # fmt: skip


def note_prices(results: Results) -> str:
    """Return a sentence on the price list of computing in virtual time; empty in real time."""
    experiment = experiment_of(results.manifest)
    if in_real_time(str(experiment.get("kernel"))):
        return ""
    own = clean(str(experiment.get("prices_from") or ""))
    names = {name.partition(" ")[0] for name in lists_of(results)} or {"model"}
    origins = [ORIGINS[name] for name in ORIGINS if name in names]
    return PRICED.format(own or " or ".join(origins))


def lists_of(results: Results) -> tuple[str, ...]:
    """Return the price lists of all records, each once."""
    conditions = (record.trial.condition for record in results.records)
    servers = (getattr(each, "server", None) for each in conditions)
    return tuple(dict.fromkeys(server.prices for server in servers if server is not None))


def first_list(loads: pd.DataFrame) -> pd.Series[bool]:
    """Return which of ``loads`` are by the first price list that was planned."""
    return loads[LIST] == (loads[LIST].iloc[0] if len(loads) else "")


def judge_lists(
    loads: pd.DataFrame, check: Callable[[pd.DataFrame], Iterable[StatedCheck]]
) -> tuple[Grid, ...]:
    """Return a table of what each claim comes to by each price list; none of a single list."""
    by_list = {str(name): part for name, part in loads.groupby(LIST, sort=False)}
    if len(by_list) < 2:
        return ()
    verdicts: dict[tuple[str, str, str], dict[str, StatedCheck]] = {}
    for name, part in by_list.items():
        for each in check(part):
            verdicts.setdefault((each.where, each.what, each.stated), {})[name] = each
    rows = [(*claim, next(iter(checks.values())).ours, *judge_claim(checks))
            for claim, checks in verdicts.items()]  # fmt: skip
    first = next(iter(by_list))
    return (
        Grid(
            f"What depends on the prices: each claim by {len(by_list)} price lists",
            ("Where", "Claim", "Stated", f"Ours by {first}", "Agrees", "Verdict"),
            tuple(rows),
            "A list such as \u201cmodel syn*2\u201d has one price varied and the others scaled, so "
            "that a connection costs the same. Robust: the same verdict by all lists.",
        ),
    )


def judge_claim(checks: Mapping[str, StatedCheck]) -> tuple[str, str]:
    """Return by how many lists a claim agrees, and whether that depends on the list, in words."""
    found = {
        name: each.agreement for name, each in checks.items() if each.agreement != "not measured"
    }
    if not found:
        return "\u2013", "not measured"
    agreeing = sum(verdict == "agrees" for verdict in found.values())
    share = f"by {agreeing} of {len(found)}"
    if len(set(found.values())) == 1:
        return share, f"robust: {next(iter(found.values()))}"
    parts = []
    for name, verdict in found.items():
        base, _, varied = name.partition(" ")
        if varied and base in found and verdict != found[base]:
            parts.append(PART_WORDS[varied.partition("*")[0]])
    bases = {verdict for name, verdict in found.items() if " " not in name}
    lists = ["the list"] if len(bases) > 1 else []
    prices = [f"the price of {part}" for part in dict.fromkeys(parts)]
    return share, f"depends on {', '.join([*prices, *lists]) or 'the list'}"
