"""Curves of a server under load: throughput, response time and failures over the rate, by arm.

What the figures of A. Shukla, T. Brecht: TCP Connection Management Mechanisms for Improving
Internet Server Performance (2006), have in common.  An *arm* is a way to establish and to end
connections, with a kind of clients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis import plot
from analysis.records.cells import experiment_of, flatten
from analysis.records.results import Results
from analysis.report.publications import Agreement, Figure, Grid, StatedCheck
from analysis.words import number
from testbed.model import Record
from wings.papers.reproductions.sweep import (
    RUN,
    SERVED_KNOBS,
    grid_of,
    median_columns,
    named,
    plain,
    proven_records,
    titled,
)
from wings.papers.reproductions.view import MeasuredColumn, View
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.price_list import connection_price

RATE = "rate_of_saturation"
ARM = ["arm", "mechanism", "ending", "retries_refused"]
AXES = (*ARM[1:], "rate_per_s")
UNSETTLED = (
    "There is no mean response that had settled: none came, or it still moved between the halves "
    "of the measured time."
)
MECHANISM = "Mechanism"
"""An arm, in the key of a figure."""
MEASURED = ("throughput", "response_ms", "failed_pct", "answered_pct", "again_pct")
SHARE = "replies_of_saturation"
KEPT_UP_PCT = 95.0
"""Of a saturation: the least share of connections answered as fast as they come.  A search asks for
more, and for longer: in four seconds a queue that fills meanwhile is 3 %."""


@dataclass(frozen=True, slots=True)
class ArmPair:
    """An arm, and the base arm that it is compared with."""

    arm: str
    base: str


def view_of(place: str, *, responses: bool = True) -> View:
    """Return the view of a figure of these curves, with response times and failures or without."""
    throughput = (MeasuredColumn(SHARE, "Replies, multiple of the saturation", places=3),
                  MeasuredColumn("throughput", "Replies (1/s)"))  # fmt: skip
    further = ((MeasuredColumn("response_ms", "Mean response (ms)", log=True),),
               (MeasuredColumn("failed_pct", "Failed (%)", "points", relative=False),))  # fmt: skip
    return View(place, _read_for_view, MECHANISM, (RATE, "rate_per_s"),
                (throughput, *(further if responses else ())), AXES)  # fmt: skip


def _read_for_view(results: Results) -> pd.DataFrame:
    loads = served_loads(results)
    share = loads["throughput"] * loads[RATE] / loads["rate_per_s"]
    return loads.assign(**{MECHANISM: loads["arm"], SHARE: share})


def name_arm(mechanism: str, ending: str, retries_refused: int) -> str:
    """Return the publication's name of an arm: ``abort rst-syn close-rst win-emu``."""
    words = [mechanism, *["close-rst"] * (ending == "rst"), *["win-emu"] * bool(retries_refused)]
    return " ".join(words)


def served_loads(results: Results) -> pd.DataFrame:
    """Return a row for each proven load, in planned order.

    Columns: knobs, RUN, ``arm``, RATE (NaN where no saturation is stated), MEASURED:
    ``throughput`` in replies a second, the mean ``response_ms``, ``failed_pct``, ``again_pct``,
    the share of SYNs sent again for the first time that a SYN-ACK answered, and ``answered_pct``,
    the replies as a share of the connections that came meanwhile; and ``connection_us``, the price
    of a connection in virtual time.  A mean that has not settled is NaN: it is of no load that goes
    on.
    """
    stated = experiment_of(results.manifest).get("saturation_per_s")
    saturation = float(stated) if stated else math.nan
    rows = [
        {
            **(axes := flatten(record.trial.condition)),
            "seed": record.trial.seed,
            "repetition": record.trial.repetition,
            "arm": name_arm(axes["mechanism"], axes["ending"], axes["retries_refused"]),
            # With few decimals: it was a round multiple before rates were made whole.
            RATE: round(axes["rate_per_s"] / saturation, 2),
            "throughput": served.replies_per_s,
            "response_ms": served.response_mean_ms if served.is_settled else None,
            "again_pct": percent_of(served.repeated_answered, served.repeated),
            "failed_pct": served.failed_pct,
            "answered_pct": 100 * served.replies_per_s * served.seconds / served.started,
            "connection_us": price_connection_us(served.prices_ns),
        }
        for record in proven_records(results)
        if (served := record.measured_as(ServedLoad)) is not None and served.started
    ]
    columns = [*SERVED_KNOBS, *RUN, "arm", RATE, *MEASURED, "connection_us"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(MEASURED, float))


def percent_of(part: int, whole: int) -> float:
    """Return a share in percent; NaN of nothing."""
    return 100 * part / whole if whole else math.nan


def price_connection_us(prices_ns: Mapping[str, int]) -> float:
    """Return the price of one connection by a price list, in us; NaN without a list."""
    return connection_price(prices_ns) / 1000 if any(prices_ns.values()) else math.nan


def curves_of(loads: pd.DataFrame, further: Sequence[str] = ()) -> pd.DataFrame:
    """Return a row for each arm and rate: the medians of MEASURED with their intervals.

    So for each value of ``further`` knobs, if there are any.
    """
    return _noted(median_columns(loads, [*ARM, *further, RATE, "rate_per_s"], MEASURED))


def _noted(rows: pd.DataFrame, of: str = "response_ms") -> pd.DataFrame:
    """Return ``rows`` with a column ``missing``: why a row of proven loads has no mean response."""
    return rows.assign(missing=[UNSETTLED if plain(value) is None else "" for value in rows[of]])


def gains_of(
    loads: pd.DataFrame, pairs: Iterable[ArmPair], further: Sequence[str] = ()
) -> pd.DataFrame:
    """Return a row for each pair and rate, of the runs that have both, seed by seed.

    So for each value of ``further`` knobs, if there are any.

    Columns: those of ARM, ``base``, RATE; medians with their intervals: ``gain`` of throughput in
    percent, ``quicker``, how many orders of magnitude (powers of ten) the mean response is sooner,
    and ``fewer_failed`` in percentage points.
    """
    paired = _beside_base(loads, pairs, [*further, RATE, "rate_per_s", *RUN], MEASURED)
    gains = paired.assign(
        gain=(paired["throughput"] / paired["throughput_base"] - 1) * 100,
        quicker=(paired["response_ms_base"] / paired["response_ms"]).map(_log10),
        fewer_failed=paired["failed_pct_base"] - paired["failed_pct"],
    )
    by = [*ARM, "base", *further, RATE, "rate_per_s"]
    return _noted(median_columns(gains, by, ("gain", "quicker", "fewer_failed")), "quicker")


def peaks_of(loads: pd.DataFrame, pairs: Iterable[ArmPair]) -> pd.DataFrame:
    """Return a row for each pair: how much higher the arm's peak is, ``peak_gain`` in percent.

    A peak is the greatest throughput at any rate, seed by seed; ``peak`` is the arm's.
    """
    tops = loads.groupby([*ARM, *RUN], sort=False)["throughput"].max().rename("peak").reset_index()
    paired = _beside_base(tops, pairs, RUN, ["peak"])
    peaks = paired.assign(peak_gain=(paired["peak"] / paired["peak_base"] - 1) * 100)
    return median_columns(peaks, [*ARM, "base"], ("peak", "peak_gain"))


def _beside_base(
    loads: pd.DataFrame, pairs: Iterable[ArmPair], at: Sequence[str], names: Sequence[str]
) -> pd.DataFrame:
    """Return the rows of each arm with the columns ``names`` of its base, which is equal ``at``."""
    paired = []
    for pair in pairs:
        arm, base = (loads[loads["arm"] == name] for name in (pair.arm, pair.base))
        merged = arm.merge(base[[*at, *names]], on=list(at), suffixes=("", "_base"))
        paired.append(merged.assign(base=pair.base))
    return pd.concat(paired, ignore_index=True)


def grid_of_curves(
    curves: pd.DataFrame, title: str, further: Mapping[str, str] | None = None
) -> Grid:
    """Return the numbers of all curves as a table, with the headings of ``further`` knobs."""
    return grid_of(curves, title,
                   {"arm": "Mechanism", **(further or {}), RATE: "Rate of saturation|2",
                    "rate_per_s": "Rate (1/s)",
                    "throughput": "Replies (1/s)|1", "throughput_low": "from|1",
                    "throughput_high": "to|1", "response_ms": "Mean response (ms)|1",
                    "response_ms_low": "from (ms)|1", "response_ms_high": "to (ms)|1",
                    "failed_pct": "Failed (%)|1"},
                   "Medians over the seeds, and the intervals of the medians. A mean response "
                   "that moved between the halves of the measured time is left out.")  # fmt: skip


def draw_throughput(loads: pd.DataFrame, place: str, part: str, note: str) -> Figure:
    """Return throughput over the rate; dashed, what the prices leave room for."""
    caption = (
        "Replies a second over the rate at which connections come: medians, and the range of the "
        f"seeds.{_DASHED if loads['connection_us'].notna().any() else ''} {note}"
    )
    replies = loads.rename(columns={"throughput": "replies_per_s"})
    return _draw(replies, "replies_per_s", f"{place}: throughput", part, caption,
                 model=_ideal(loads, _rate_of(loads)))  # fmt: skip


_DASHED = (
    " Dashed: the rate itself, up to what the price of a connection that ends with FINs leaves "
    "room for; a server that spent nothing on those that it cannot serve would be there."
)


def draw_response(loads: pd.DataFrame, place: str, part: str, note: str) -> Figure:
    """Return the mean response time over the rate, on a logarithmic scale."""
    caption = (
        "Mean time from a connection's intended start to the end of its response, of those that "
        f"were answered, on a logarithmic scale: medians, and the range of the seeds. {note}"
    )
    answered = loads.dropna(subset=["response_ms"])
    renamed = answered.rename(columns={"response_ms": "response_mean_ms"})
    title = f"{place}: response time"
    return _draw(renamed, "response_mean_ms", title, part, caption, log=True)


def draw_failures(loads: pd.DataFrame, place: str, part: str, note: str) -> Figure:
    """Return the share of connections without a response over the rate."""
    caption = (
        "Connections that were refused, reset or given up, in percent of those that came: medians, "
        f"and the range of the seeds. {note}"
    )
    return _draw(loads, "failed_pct", f"{place}: failures", part, caption)


def _draw(loads: pd.DataFrame, column: str, title: str, part: str, caption: str,
          **options: Any) -> Figure:  # fmt: skip
    """Return a ``column`` over the rate; the figure is named as its title ends."""
    shown = loads.assign(**{MECHANISM: loads["arm"]})
    chart = plot.lines(shown, x=_rate_of(loads), y=column, color=MECHANISM, **options)
    name = title.partition(": ")[2].replace(" ", "-")
    return Figure(named(name, part), titled(title, part), chart, caption.strip())


def check_saturation(results: Results, curves: pd.DataFrame) -> StatedCheck:
    """Check the stated saturation against the loads of the first planned arm."""
    stated = experiment_of(results.manifest).get("saturation_per_s")
    where, promise = "This experiment", "saturation: kept up with, and no rate a tenth above it"
    if not stated or curves.empty:
        return StatedCheck(
            where, promise, "\u2013", "\u2013", "not measured", "No saturation is stated."
        )
    first = curves[curves["arm"] == curves["arm"].iloc[0]]
    below, above = first[first[RATE] <= 1.0], first[first[RATE] >= 1.1]
    kept_up = bool((below["answered_pct"] >= KEPT_UP_PCT).all())
    passed = bool((above["answered_pct"] < KEPT_UP_PCT).all())
    shown = pd.concat([below.tail(1), above.head(1)])
    ours = "; ".join(
        f"{number(answered, 1)} % answered at {number(rate, 2)}"
        for answered, rate in zip(shown["answered_pct"], shown[RATE], strict=True)
    )
    agreement: Agreement
    if below.empty or above.empty:
        agreement, why = "not measured", "It takes a rate up to it, and one a tenth above it."
    elif kept_up and passed:
        agreement, why = "agrees", ""
    else:
        agreement, why = (
            "differs",
            ("The rates are multiples of another server's saturation: find this one's with "
             "./run.sh saturation, and measure again.")
        )  # fmt: skip
    return StatedCheck(where, promise, f"{stated:,} 1/s", ours, agreement, why)


def in_words(curves: pd.DataFrame, rate: float, arms: Sequence[str]) -> str:
    """Return the arms at a rate in words: replies a second, and the mean response time."""
    at = curves[(curves[RATE] == rate) & curves["arm"].isin(arms)]
    return ", ".join(
        f"{arm} {number(replies, 0)} a second after {number(response_ms, 0)} ms"
        for arm, replies, response_ms in zip(
            at["arm"], at["throughput"], at["response_ms"], strict=True
        )
    )


def beginning(results: Results, curves: pd.DataFrame) -> str:
    """Return the first sentence of a story: the capacity, as far as it is known."""
    saturation = experiment_of(results.manifest).get("saturation_per_s")
    check = check_saturation(results, curves)
    if check.agreement == "differs":
        return (
            f"The rates are multiples of {saturation:,} connections a second, which is not where "
            "this server saturates: read no curve as the publication's."
        )
    if not saturation:
        return "No saturation is stated, so nothing is held against the publication."
    return (
        f"The server keeps up with {saturation:,} connections a second, found by bisection, and "
        "every rate is a multiple of that."
    )


def _rate_of(loads: pd.DataFrame) -> str:
    """Return the rate that loads are drawn over."""
    return RATE if loads[RATE].notna().all() else "rate_per_s"


def _ideal(loads: pd.DataFrame, x: str) -> pd.DataFrame | None:
    """Return what would be answered if every answered connection cost its price, and others none.

    ``None`` where nothing has a price.
    """
    prices = loads["connection_us"].dropna()
    if prices.empty:
        return None
    capacity = 1e6 / prices.iloc[0]
    rates = loads[list({x: None, "rate_per_s": None})].drop_duplicates().sort_values(x)
    least, most = rates.iloc[0], rates.iloc[-1]
    if least["rate_per_s"] < capacity < most["rate_per_s"]:
        unit = most["rate_per_s"] / most[x]
        bend = pd.DataFrame([{"rate_per_s": capacity, x: capacity / unit}])
        rates = pd.concat([rates, bend]).sort_values(x)
    return rates.assign(replies_per_s=rates["rate_per_s"].clip(upper=capacity))


VIEW_OF_LOADS = view_of("Load on a server")
"""Of experiments that rebuild no figure."""


def _log10(ratio: Any) -> float:
    return math.log10(ratio) if ratio > 0 else math.nan


def segments_of(record: Record, served: ServedLoad) -> dict[str, float]:
    """Return what the server of a load received, by the rows of Table II.

    The counts are of the whole load, the warm-up included.  ``handshake_acks`` is NaN where the
    capture is only the beginning of a load, and so are SYNs that the server does not count.
    """
    proof = record.proof
    counters = proof.server_counters if proof else {}
    acks = math.nan if proof is None or proof.handshake_acks is None else proof.handshake_acks
    captured = math.nan if proof is None or math.isnan(acks) else proof.syns
    syns = served.server.get("syns", captured)
    established = counters.get("TcpPassiveOpens", math.nan)
    return {"expected_syns": served.all_started, "actual_syns": syns, "handshake_acks": acks,
            "establishment_segments": syns + acks, "established": established,
            "established_share": established / syns if syns else math.nan,
            "total_segments": counters.get("TcpInSegs", math.nan)}  # fmt: skip
