"""Rows of a drawing, made from frames or from plain rows, and the words of their columns.

Fields of a drawing have names of our own, because Vega reads dots and brackets in a field's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from analysis.records.kind import all_metrics
from analysis.words import KNOBS, axis_name, axis_value, capitalised, is_setting, unit_of
from testbed.base.errors import ConfigurationError

if TYPE_CHECKING:  # a report has rows, which need no pandas
    import pandas as pd

Row: TypeAlias = dict[str, Any]
Data: TypeAlias = "pd.DataFrame | Sequence[Mapping[str, Any]]"

# Columns that are measured or derived; knobs are in analysis.words.  Other columns are named by
# themselves, so that a good column name is enough.
MEASURED_NAMES = {**{metric.name: capitalised(metric.label) for metric in all_metrics()},
                  "plt_s": "Page load time", "latency_ms": "Request latency",
                  "start_ms": "Start of request", "end_ms": "End of request",
                  "transfer_bytes": "Transferred", "syns_with_payload": "SYNs with data",
                  "handshake_pct": "Handshake's share of latency"}  # fmt: skip


def read_rows(data: Data, names: Iterable[str | None], figure: str) -> list[Row]:
    """Return the columns ``names`` of a frame or of plain rows; missing values are ``None``.

    ``figure`` names what is drawn, for messages.

    Raises:
        ConfigurationError: one sentence for each column that is missing, with those that exist.
    """
    requested = given(*names)
    columns = columns_of(data)
    rows: Iterable[Mapping[Any, Any]]
    if isinstance(data, Sequence):
        rows = data
    else:
        chosen = data[[name for name in requested if name in columns]]
        rows = chosen.astype(object).where(chosen.notna(), None).to_dict("records")
    missing = [name for name in requested if name not in columns]
    if missing:
        known = ", ".join(columns) or "none at all"
        raise ConfigurationError(
            [f"{figure}: the frame has no column {name!r}; it has {known}" for name in missing]
        )
    return [{name: _known(row.get(name)) for name in requested} for row in rows]


def columns_of(data: Data) -> list[str]:
    """Return the names of the columns of a frame, or of all plain rows."""
    if isinstance(data, Sequence):
        return list(dict.fromkeys(name for row in data for name in row))
    return [str(name) for name in data.columns]


def check_drawable(rows: Sequence[object], figure: str, columns: Sequence[str]) -> None:
    """Check that there is anything to draw.

    Raises:
        ConfigurationError: ``rows`` is empty.
    """
    if not rows:
        raise ConfigurationError(
            [f"{figure}: nothing to draw, no row has a value in {' and '.join(columns)}"]
        )


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a number; truth values are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return each value once: numbers and truth values rising, names in order of appearance."""
    unique = list(dict.fromkeys(values))
    if all(isinstance(value, (int, float)) for value in unique):
        return sorted(unique)
    return unique


def value_text(name: str, value: Any) -> str:
    """Return a value without its unit, which the title has: ``20``, ``on``, ``amazon``."""
    return f"{value:g}" if is_number(value) else axis_value(name, value)


def texts(
    rows: Iterable[Row], name: str | None, as_text: Callable[[str, Any], str] = value_text
) -> list[str]:
    """Return the values of column ``name`` as text, each once, in the order of `distinct`."""
    if name is None:
        return []
    return list(dict.fromkeys(as_text(name, value) for value in distinct(r[name] for r in rows)))


def groups(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows that agree in the columns ``names``, in order of appearance."""
    rows_by_key: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        rows_by_key.setdefault(tuple(row[name] for name in names), []).append(row)
    return rows_by_key


def panels_of(
    rows: Iterable[Row], facet: str | None, figure: str
) -> Iterator[tuple[Row, list[Row]]]:
    """Yield of each panel the field that names it, none without ``facet``, and its load's rows.

    Raises:
        ConfigurationError: a panel would hold several loads (``trial_id``) of ``figure``.
    """
    for key, load in groups(rows, given(facet)).items():
        loads = len({row["trial_id"] for row in load})
        if loads > 1:
            raise ConfigurationError(
                [f"{figure}: {loads} loads in one panel; choose one by its knobs and its seed"]
            )
        yield ({"facet": panel_text(facet, key[0])} if facet is not None else {}), load


def numbers(values: Iterable[Any]) -> list[float]:
    """Return the finite numbers among ``values``, in order."""
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def given(*names: str | None) -> list[str]:
    """Return those of ``names`` that are not ``None``, each once."""
    return list(dict.fromkeys(name for name in names if name is not None))


def column_title(name: str) -> str:
    """Return heading and unit, as ``Page load time (ms)``; a name with a space in it as it is."""
    if " " in name:
        return name
    unit = unit_of(name)
    if name in MEASURED_NAMES:
        heading = MEASURED_NAMES[name]
    elif name in KNOBS or is_setting(name):
        heading = axis_name(name)
    else:
        heading = (name.rpartition("_")[0] if unit else name).replace("_", " ")
        heading = heading[:1].upper() + heading[1:]
    return f"{heading} ({unit})" if unit else heading


def panel_text(name: str, value: Any) -> str:
    """Return the heading of a panel, which has no title above: ``RTT 20 ms``, ``amazon``."""
    if isinstance(value, str):
        return axis_value(name, value)
    if name in KNOBS or is_setting(name):
        return f"{axis_name(name)} {axis_value(name, value)}"
    return f"{column_title(name)} {value_text(name, value)}"


def decimals(values: Sequence[float]) -> int:
    """Return how many decimals show about three digits of the largest of ``values``."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest >= 100 or all(value == math.floor(value) for value in values):
        return 0
    return 1 if largest >= 10 else 2


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
