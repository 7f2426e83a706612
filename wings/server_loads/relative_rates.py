"""Rates as multiples of a server's saturation, which stands in the file as a number.

So a plan is the same wherever and whenever it is made; only the search for the saturation needs a
kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from testbed.experiment.knobs import OF_KIND, kinds_with
from testbed.model import DEFAULT_KIND
from wings.server_loads.spec import HIGHEST_RATE, RATE, RELATIVE_RATE, product

Where = Callable[[tuple[str, ...]], str]


def replace_relative(values: Mapping[str, Any], where: Where) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a file with ``rate_per_s`` in the place of its multiples of saturation.

    Beside them is a sentence for each problem; with one, the values are those of the file.
    """
    tables = {name: values.get(name, {}) for name in ("sweep", "arrivals")}
    given = [name for name, table in tables.items() if RELATIVE_RATE in table]
    if not given:
        return dict(values), []
    place = f"{where((given[0], RELATIVE_RATE))}: {given[0]}.{RELATIVE_RATE}"
    kind, saturation = values.get("kind", DEFAULT_KIND), values.get("saturation_per_s")
    wrong = {
        f"trials of the kind {kind} have no {RATE}; set kind = {kinds_with(RATE)}":
            RATE not in OF_KIND[kind],
        "also in [arrivals]; keep one of the two": len(given) > 1,
        f"there is {RATE} as well; keep one of the two":
            any(RATE in table for table in tables.values()),
        "a multiple of saturation_per_s, which is not set; ./run.sh saturation FILE finds it, then "
        "set it at the top of the file": saturation is None,
    }  # fmt: skip
    problems = [f"{place}: {problem}" for problem, there in wrong.items() if there]
    if problems or saturation is None:
        return dict(values), problems
    multiples = tables[given[0]][RELATIVE_RATE]
    rates = [
        product(multiple, saturation)
        for multiple in (multiples if isinstance(multiples, list) else [multiples])
    ]
    if min(rates) < 1 or max(rates) > HIGHEST_RATE or len(set(rates)) < len(rates):
        return dict(values), [
            f"{place}: times {saturation:,} this is {', '.join(map(str, rates))} a second; "
            f"allowed: different whole numbers from 1 to {HIGHEST_RATE}"
        ]
    made = {"sweep": rates, "arrivals": rates[0]}
    # An axis keeps its place: trials run in the order of the axes.
    return {
        **values,
        **{
            name: dict(
                (RATE, made[name]) if knob == RELATIVE_RATE else (knob, value)
                for knob, value in table.items()
            )
            for name, table in tables.items()
        },
    }, []
