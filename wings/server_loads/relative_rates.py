"""Rates as multiples of a server's saturation, which stands in the file as a number.

So a plan is the same wherever and whenever it is made; only the search for the saturation needs a
kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from testbed.experiment.knobs import OF_KIND, SWEPT, kinds_with
from testbed.model import DEFAULT_KIND
from wings.server_loads.spec import RATE, RELATIVE_RATE, product

Where = Callable[[tuple[str, ...]], str]


def replace_relative(values: Mapping[str, Any], where: Where) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a file with ``rate_per_s`` in the place of its multiples of saturation.

    Beside them is a sentence for each problem; with one, the values are those of the file.
    """
    tables = {name: values.get(name, {}) for name in ("sweep", "arrivals")}
    sweep, arrivals = tables.values()
    given = [
        ((name, RELATIVE_RATE), table[RELATIVE_RATE])
        for name, table in tables.items()
        if RELATIVE_RATE in table
    ]
    if not given:
        return dict(values), []
    (key, multiples), *others = given
    place = f"{where(key)}: {'.'.join(key)}"
    saturation = values.get("saturation_per_s")
    problems = []
    kind = values.get("kind", DEFAULT_KIND)
    if RATE not in OF_KIND[kind]:
        problems.append(
            f"{place}: trials of the kind {kind} have no {RATE}; set kind = {kinds_with(RATE)}"
        )
    if others:
        problems.append(f"{place}: also in [arrivals]; keep one of the two")
    if RATE in sweep or RATE in arrivals:
        problems.append(f"{place}: there is {RATE} as well; keep one of the two")
    if saturation is None:
        problems.append(
            f"{place}: a multiple of saturation_per_s, which is not set; "
            "./run.sh saturation FILE finds it, then set it at the top of the file"
        )
    if problems or saturation is None:
        return dict(values), problems
    rates = [
        product(multiple, saturation)
        for multiple in (multiples if isinstance(multiples, list) else [multiples])
    ]
    highest = int(SWEPT[RATE].declared.knob.high or 0)
    if min(rates) < 1 or max(rates) > highest or len(set(rates)) < len(rates):
        return dict(values), [
            f"{place}: times {saturation:,} this is {', '.join(map(str, rates))} a second; "
            f"allowed: different whole numbers from 1 to {highest}"
        ]
    made = {
        **values,
        "arrivals": {name: value for name, value in arrivals.items() if name != RELATIVE_RATE},
        # An axis keeps its place: trials run in the order of the axes.
        "sweep": {
            (RATE if name == RELATIVE_RATE else name): (rates if name == RELATIVE_RATE else value)
            for name, value in sweep.items()
        },
    }
    if key[0] == "arrivals":
        made["arrivals"][RATE] = rates[0]
    return made, []
