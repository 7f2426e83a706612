"""What our own HAR files say beyond HAR 1.2, so that an exported page comes back as it was.

The fields are those of ``page/har.py``, ``page/recorded_har.py`` and ``page/export.py``.  A file
that has them may be anyone's: what they say is screened as all else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace

from testbed.pages.export import TRANSFERRED
from testbed.pages.importing.claim import Claim
from testbed.pages.importing.notes import Notes
from testbed.pages.importing.values import Fields

_CREATORS = frozenset({"firstflight", "testbed.page"})


def is_own(creator: str) -> bool:
    """Whether we are the producer of that name."""
    return creator in _CREATORS


def refine(claim: Claim, entry: Fields, notes: Notes) -> Claim:
    """``claim`` with what only our own entries say: the body as transferred, what led to it."""
    claim = replace(
        claim,
        initiator=entry.text("_parent") or None,
        how=entry.text("_how"),
        after_load=entry.raw("_after_load") is True,
        start_ms=entry.number("_start_ms"),
        dur_ms=entry.number("_dur_ms"),
    )
    text = entry.fields("response").take_text(TRANSFERRED)
    if text is None:
        return claim
    try:
        body = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        notes.add("Bodies as transferred that are no base64, compressed again", claim.url)
        return claim
    return replace(claim, body=body, body_is_decoded=False, body_size=len(body))


def order_by_parent(claims: Sequence[Claim]) -> list[Claim]:
    """The claims in their order, except that each stands behind the one that led to it.

    In a table, what has no recorded start comes last, also when it led to others; an archive that
    is written anew resolves what led to a request among those before it.
    """
    first = {claim.url: index for index, claim in reversed(list(enumerate(claims)))}
    placed: dict[int, None] = {}
    for index in range(len(claims)):
        waiting: dict[int, None] = {}
        at: int | None = index
        while at is not None and at not in placed and at not in waiting:
            waiting[at] = None
            at = first.get(claims[at].initiator or "")
        placed |= dict.fromkeys(reversed(waiting))
    return [claims[index] for index in placed]
