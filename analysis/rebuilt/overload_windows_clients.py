"""Clients that connect again at once when refused: Figure 4 of Shukla and Brecht, 2006."""

from __future__ import annotations

from analysis.publications.reference import Reference
from analysis.rebuilt.agreement import check_claims
from analysis.rebuilt.overload_curves import (
    AXES,
    RATE,
    ArmPair,
    beginning,
    check_saturation,
    curves_of,
    draw_failures,
    draw_response,
    draw_throughput,
    gains_of,
    grid_of_curves,
    in_words,
    note_of,
    served_loads,
)
from analysis.rebuilt.rebuilt import Check, Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import split_loads, titled
from analysis.records.results import Results
from analysis.words import number

ABORT, REFUSING, NEVER_REFUSING, REGULAR = (
    "abort win-emu", "abort rst-syn win-emu", "no-syn-drop win-emu", "abort rst-syn",
)  # fmt: skip
PAIRS = (
    ArmPair(REFUSING, ABORT),
    ArmPair(REFUSING, REGULAR),
    ArmPair(NEVER_REFUSING, ABORT),
    ArmPair(NEVER_REFUSING, REFUSING),
    ArmPair(NEVER_REFUSING, REGULAR),
)


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return both panels of the figure, the failures, and the checks of what the text states."""
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[Check] = []
    story: list[str] = []
    note = note_of(results)
    for part, loads in split_loads(served_loads(results), AXES):
        if loads.empty:
            continue
        curves = curves_of(loads)
        tables.append(grid_of_curves(curves, titled("Figure 4 in numbers", part)))
        figures += [
            draw_throughput(loads, "Figure 4(a)", part, note),
            draw_response(loads, "Figure 4(b)", part, note),
            draw_failures(loads, "Beside Figure 4", part, note),
        ]
        known = loads.dropna(subset=[RATE])
        story.append(titled(beginning(results, curves), part))
        if not known.empty and (most := known[RATE].max()) > 1:
            arms = list(curves["arm"].unique())
            story.append(
                f"At {number(most, 2)} times it: {in_words(curves, most, arms)}. A Windows client "
                "(win-emu) that is refused connects again at once, up to twice, so that rst-syn "
                "has three SYNs to refuse instead of one; no-syn-drop refuses no SYN and resets "
                "the connection at the end of its handshake instead, which such a client takes "
                "for an end."
            )
        checks.append(check_saturation(results, curves))
        checks += check_claims(reference, {"pairs": gains_of(known, PAIRS)}, part)
    title = "Clients that connect again at once"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks), story=tuple(story))
