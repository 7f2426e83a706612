"""A few of many, where all would be too many to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def spread_over(items: Sequence[T], most: int) -> list[T]:
    """Return ``most`` of ``items`` at even distances, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return list(items[:most])
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]
