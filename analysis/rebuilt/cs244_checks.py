"""What the CS244'15 reproduction says of its results, beside ours, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analysis.publications.reference import Reference
from analysis.rebuilt.agreement import because, check_rows, check_sentence, check_value, see
from analysis.rebuilt.cs244_rows import REUSE, Row
from analysis.rebuilt.rebuilt import Check
from analysis.words import count, number


def check_reproduction(rows: Sequence[Row], reference: Reference | None) -> list[Check]:
    """Return a check of each sentence and stated number about ``rows``."""
    measured = [row for row in rows if row.improvement_pct is not None]
    gains = [(row, row.improvement_pct or 0.0) for row in measured]
    held = [f"{row.name} at {row.resources}" for row, gain in gains if gain > 0]
    lost = [f"{row.name} at {row.resources} ({number(g, 1)} %)" for row, g in gains if g <= 0]
    hidden = "In these rows the round trips saved may hide behind the queue of the link."
    why = _why(hidden, reference)
    helps = "improves page load time here as well"
    checks = check_sentence(reference, helps, held, lost, why)
    checks += _check_reuse(measured, reference)
    for stated in reference.select("repetitions") if reference else ():
        runs = [float(row.runs) for row in measured]
        why = "The number of runs is that of the experiment file, or of -n."
        checks.append(check_value(stated, "runs of each cell", runs, why))
    for stated in reference.select("requests_per_connection_most") if reference else ():
        most = int(stated.value or 0)
        counts = {row.name: row.most for row in rows if row.most and row.axes[REUSE] == most}
        kept = [name for name, served in counts.items() if served <= most]
        broken = [f"{name}: {served}" for name, served in counts.items() if served > most]
        what = f"no connection serves more than {count(most, 'resource')}"
        checks.append(check_rows(stated.place, what, kept, broken))
    return checks


def _check_reuse(measured: Sequence[Row], reference: Reference | None) -> list[Check]:
    """Fewer resources per connection, more improvement: in every row, and every step."""
    ladders: dict[str, list[Row]] = {}
    for row in measured:
        ladders.setdefault(row.name, []).append(row)
    held: list[str] = []
    broken: list[str] = []
    for name, rows in ladders.items():
        steps = sorted(rows, key=lambda row: row.axes[REUSE] or float("inf"))
        if len(steps) < 2:
            continue
        gains = [row.improvement_pct or 0.0 for row in steps]
        falls = all(fewer > more for fewer, more in pairwise(gains))
        text = ", ".join(
            f"{number(gain, 1)} % at {row.resources} with {number(row.connections, 0)} connections"
            for gain, row in zip(gains, steps, strict=True)
        )
        (held if falls else broken).append(f"{name} ({text})")
    why = (
        "A connection more saves a round trip only where the load waits for it, and the load "
        "itself changes with the number of resources on each."
    )
    return check_sentence(
        reference, "more connections are needed", held, broken, _why(why, reference)
    )


def _why(sentence: str, reference: Reference | None) -> str:
    return because(sentence, see(reference, "several hosts"))
