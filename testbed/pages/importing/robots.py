"""Leaves out what only a crawler asks for: /robots.txt (RFC 9309); wget asks each host for it."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.pages.importing.claim import Claim
from testbed.pages.importing.notes import Notes


def without_robots(claims: Sequence[Claim], url: str | None, notes: Notes) -> tuple[Claim, ...]:
    """The claims but those for a robots.txt, unless it is ``url``, the page itself, or led to.

    A browser would never ask for it, and its load would lack a recorded request.
    """
    kept = []
    for claim in claims:
        path = claim.url.partition("://")[2].partition("/")[2]
        if path == "robots.txt" and claim.url != url and claim.initiator is None:
            notes.add("Requests left out, robots.txt, which no browser asks for", claim.url)
        else:
            kept.append(claim)
    return tuple(kept)
