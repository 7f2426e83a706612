"""From a frame to the rows of a drawing: fixed field names, values as text and in their order.

Fields have names of our own, because Vega reads dots and brackets in a field's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from analysis.plot.titles import value_text
from testbed.base.errors import ConfigurationError

Row = dict[str, Any]


def check_columns(frame: pd.DataFrame, names: Iterable[str | None], what: str) -> None:
    """Check that ``frame`` has the columns ``names`` (``None`` is left out).

    Raises:
        ConfigurationError: one sentence for each that it has not, with those that it has.
    """
    missing = [name for name in names if name is not None and name not in frame.columns]
    if missing:
        known = ", ".join(str(name) for name in frame.columns) or "none at all"
        raise ConfigurationError(
            [f"{what}: the frame has no column {name!r}; it has {known}" for name in missing]
        )


def check_drawable(rows: Sequence[object], what: str, columns: Sequence[str]) -> None:
    """Check that there is anything to draw.

    Raises:
        ConfigurationError: ``rows`` is empty.
    """
    if not rows:
        raise ConfigurationError(
            [f"{what}: nothing to draw, no row has a value in {' and '.join(columns)}"]
        )


def plain(value: Any) -> Any:
    """``value`` as Python has it: no numpy types, and ``None`` for NaN and its kin."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    return value.item() if hasattr(value, "item") else value


def is_number(frame: pd.DataFrame, name: str) -> bool:
    """Whether all that is in column ``name`` is numbers (truth values are none)."""
    values = [plain(value) for value in frame[name]]
    return all(
        isinstance(value, (int, float)) and not isinstance(value, bool)
        for value in values
        if value is not None
    )


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once: numbers and truth values rising, names in order of appearance."""
    found = list(dict.fromkeys(plain(value) for value in values))
    if all(isinstance(value, (int, float)) for value in found):
        return sorted(found)
    return found


def texts(
    name: str, values: Iterable[Any], as_text: Callable[[str, Any], str] = value_text
) -> list[str]:
    """The values of column ``name`` as text, each once, in the order of ``distinct``."""
    return list(dict.fromkeys(as_text(name, value) for value in distinct(values)))


def groups(
    frame: pd.DataFrame, names: Sequence[str]
) -> Iterable[tuple[tuple[Any, ...], pd.DataFrame]]:
    """The rows of ``frame`` that agree in the columns ``names``, in order of appearance."""
    if not names:
        return [((), frame)]
    grouped = frame.groupby(list(names), sort=False, dropna=False)
    return [(tuple(plain(value) for value in key), part) for key, part in grouped]


def numbers(column: Iterable[Any]) -> list[float]:
    """The finite numbers of a column, in order."""
    found = (plain(value) for value in column)
    return [float(value) for value in found if value is not None and math.isfinite(value)]


def inline(rows: Iterable[Row]) -> alt.InlineData:
    """``rows`` as data that travel inside the chart."""
    return alt.InlineData(values=[{name: plain(v) for name, v in row.items()} for row in rows])


def given(*names: str | None) -> list[str]:
    """Those of ``names`` that are not ``None``, each once."""
    return list(dict.fromkeys(name for name in names if name is not None))
