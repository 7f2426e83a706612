"""Neighbours did as asked, by captures of their own."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("neighbours", "line_shared")
def check_neighbours(seen: Evidence) -> Iterator[str]:
    """Each neighbour sent what, when and by the congestion control that was asked for."""
    if seen.neighbour_account is not None:
        yield from seen.neighbour_account.problems
