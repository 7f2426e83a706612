"""Ways to end connections under overload: Figure 5 of Shukla and Brecht, 2006."""

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
    draw_throughput,
    gains_of,
    grid_of_curves,
    note_of,
    peaks_of,
    served_loads,
)
from analysis.rebuilt.rebuilt import Check, Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import split_loads, titled
from analysis.records.results import Results
from analysis.words import number

DEFAULT, RST_FIN, CLOSE_RST = "default", "default rst-fin", "default close-rst"
PAIRS = (
    ArmPair(RST_FIN, DEFAULT),
    ArmPair(CLOSE_RST, DEFAULT),
    ArmPair(CLOSE_RST, RST_FIN),
    ArmPair("abort rst-syn rst-fin", RST_FIN),
    ArmPair("abort rst-syn close-rst", RST_FIN),
    ArmPair("abort rst-syn close-rst", CLOSE_RST),
)


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return the figure, which is of throughput alone, and the checks of what the text states."""
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[Check] = []
    story: list[str] = []
    note = note_of(results)
    for part, loads in split_loads(served_loads(results), AXES):
        if loads.empty:
            continue
        curves = curves_of(loads)
        known = loads.dropna(subset=[RATE])
        peaks = peaks_of(known, PAIRS)
        tables.append(grid_of_curves(curves, titled("Figure 5 in numbers", part)))
        figures.append(draw_throughput(loads, "Figure 5", part, note))
        story.append(titled(beginning(results, curves), part))
        gains = peaks[peaks["base"] == DEFAULT].set_index("arm")["peak_gain"]
        if not gains.empty:
            story.append(
                "A connection that ends with a reset instead of FINs in both directions is less "
                "work, so more of them fit: the greatest throughput is "
                + " and ".join(f"{number(gain, 1)} % higher with {arm}"
                               for arm, gain in gains.items())
                + ". Above it, how connections are established decides."
            )  # fmt: skip
        checks.append(check_saturation(results, curves))
        measured = {"pairs": gains_of(known, PAIRS), "peaks": peaks}
        checks += check_claims(reference, measured, part)
    title = "Ways to end connections under overload"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks), story=tuple(story))
