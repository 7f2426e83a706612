"""What two virtual kernels' page loads came to, in sentences and in a table for a terminal."""

from __future__ import annotations

import statistics

from analysis.regression.crosscheck.kernels import (
    CHANGE_PCT,
    Change,
    Direction,
    KernelCross,
    Overview,
    Parting,
    overview,
)
from analysis.regression.crosscheck.savings import Saving
from analysis.regression.crosscheck.words import align, kernel_name
from analysis.words import axis_value, axis_word, clean, count, number, signed
from testbed.wire.difference import describe_difference

MEANINGS: dict[Direction, str] = {
    "sooner": f"the page loads more than {CHANGE_PCT:g} % sooner on the other kernel",
    "later": f"the page loads more than {CHANGE_PCT:g} % later on the other kernel",
    "close": f"the load times differ by no more than {CHANGE_PCT:g} %",
    "equal": "every load took the same time to the bit",
    "no number": "a kernel has no proven load",
}
PARTINGS: dict[Parting, str] = {
    "acknowledgement": "TCP acknowledges at another time in {}",
    "request": "the client asks in another order in {}",
    "other": "another packet comes in {}",
    "none": "the packets come in the same order in {}",
}
SHORT: dict[Parting, str] = {
    "acknowledgement": "ack",
    "request": "request",
    "other": "",
    "none": "",
}
SELF_EXPLAINING = ("page", "client", "rtt_ms")


def name_cell(change: Change, axes: tuple[str, ...]) -> str:
    """Return a cell's name, as ``wget2, amazon, 20 ms, fast open on``."""
    words = []
    for name in axes:
        value = axis_value(name, change.axes.get(name))
        words.append(value if name in SELF_EXPLAINING else f"{axis_word(name)} {value}")
    return ", ".join(words)


def summary_lines(cross: KernelCross) -> list[str]:
    """Return what changed in sentences: how many cells, how much, where most, what it saves."""
    counts = cross.counts
    sooner, later = counts.get("sooner", 0), counts.get("later", 0)
    found = [
        f"{sooner + later} of {count(len(cross.changes), 'cell')} changed by more than "
        f"{CHANGE_PCT:g} %: {sooner} load sooner on {kernel_name(cross.other)}, {later} later; "
        f"{counts.get('equal', 0)} are equal to the bit."
    ]
    whole = overview(cross.changes)
    if whole is not None and len(cross.overviews) > 1:
        found.append(f"Page load time changed by {_spread(whole)}.")
    found += [_describe_client(client, one, cross) for client, one in cross.overviews.items()]
    if cross.savings:
        found.append(_saved(cross.savings))
    missing = counts.get("no number", 0)
    if missing:
        found.append(f"{count(missing, 'cell')} without a proven load on one of the kernels.")
    return [*found, *map(clean, cross.notes)]


def describe_wire(change: Change) -> str:
    """Return the first packet that differs in lines, or why there is none to show."""
    if change.wire is None:
        return "No pair of loads to compare."
    if change.wire.problem is not None:
        return clean(change.wire.problem)
    if change.wire.difference is None:
        return "The same packets at the same times."
    return describe_difference(change.wire.difference)


def render_text(cross: KernelCross) -> str:
    """Return the comparison as a table for a terminal, one line for each cell."""
    changes = cross.changes
    columns = [
        [axis_word(name), *(axis_value(name, one.axes.get(name)) for one in changes)]
        for name in cross.axes
    ]
    columns += [
        [kernel_name(cross.base), *(_plt(one.base_ms, one.status[0]) for one in changes)],
        [kernel_name(cross.other), *(_plt(one.other_ms, one.status[1]) for one in changes)],
        ["diff ms", *(signed(_value(one, "ms"), 1) for one in changes)],
        ["diff %", *(signed(_value(one, "percent"), 2) for one in changes)],
        *([["interval %", *map(_interval, changes)]] if any(c.n > 1 for c in changes) else []),
        ["packets", *(_packets(one) for one in changes)],
        ["resent", *(_resent(one) for one in changes)],
        ["parts at", *(first_packet(one) for one in changes)],
        ["", *(one.direction for one in changes)],
    ]
    text = [*align(columns), "", *summary_lines(cross)]
    for one in cross.overviews.values():
        name = name_cell(one.largest, cross.axes)
        base, other = kernel_name(cross.base), kernel_name(cross.other)
        text += ["", f"The first packet that differs in {name} (base: {base}, new: {other}):"]
        text.append(describe_wire(one.largest))
    return "\n".join(text) + "\n"


def first_packet(change: Change) -> str:
    """Return the number of the first packet that is another one and its kind, as ``#7 ack``.

    A packet that comes much later or sooner is another one too.  Where only other fields or
    times differ, the number of the first such packet in brackets.
    """
    wire = change.wire
    if wire is None or wire.difference is None:
        return number(None, 0)
    difference = wire.difference
    telling = f"#{difference.telling.number}"
    if not (difference.order or difference.jump):
        return f"({telling})"
    return f"{telling} {SHORT[wire.parting]}".rstrip()


def _describe_client(client: str, one: Overview, cross: KernelCross) -> str:
    largest = one.largest
    return (
        f"{clean(client)}: {_spread(one)}; most in {name_cell(largest, cross.axes)}: "
        f"{number(largest.base_ms, 1)} ms on {kernel_name(cross.base)}, "
        f"{number(largest.other_ms, 1)} ms on {kernel_name(cross.other)} "
        f"({signed(_value(largest, 'ms'), 1)} ms). {_describe_partings(one)}"
    )


def _describe_partings(one: Overview) -> str:
    found = [
        words.format(count(one.partings[parting], "cell"))
        for parting, words in PARTINGS.items()
        if parting in one.partings
    ]
    return f"Where the loads part first: {', '.join(found)}."


def _saved(savings: tuple[Saving, ...]) -> str:
    gaps = [saving.difference_ms for saving in savings]
    return (
        f"What Fast Open saves changed by {signed(statistics.median(gaps), 1)} ms in the median "
        f"({signed(min(gaps), 1)} to {signed(max(gaps), 1)} ms)."
    )


def _spread(one: Overview) -> str:
    return (
        f"{signed(one.median, 2)} % in the median of {count(one.cells, 'cell')}, "
        f"from {signed(one.low, 2)} to {signed(one.high, 2)} %"
    )


def _value(change: Change, name: str) -> float | None:
    estimate = change.ms if name == "ms" else change.percent
    return estimate.value if estimate is not None else None


def _interval(change: Change) -> str:
    interval = change.percent.interval if change.percent is not None else None
    if interval is None:
        return number(None, 0)
    return f"{signed(interval.low, 2)} to {signed(interval.high, 2)}"


def _plt(ms: float | None, status: str) -> str:
    return number(ms, 1) if ms is not None else status


def _packets(change: Change) -> str:
    counts = change.wire.packets if change.wire is not None else None
    return f"{counts[0]} {counts[1]}" if counts else number(None, 0)


def _resent(change: Change) -> str:
    return "{} {}".format(*change.wire.retransmits) if change.wire else number(None, 0)
