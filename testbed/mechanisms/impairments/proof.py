"""Damage on the way: no more frames came damaged than the link damaged."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("damage", "capture", "link", source="RFC 1071")
def check_damage(seen: Evidence) -> Iterator[str]:
    """No more frames came down damaged than the link says it damaged."""
    corrupted = seen.counted.get("down.corrupted", 0)
    if len(seen.damaged) > corrupted:
        yield f"{len(seen.damaged)} frames came down damaged, the link damaged {corrupted}"
