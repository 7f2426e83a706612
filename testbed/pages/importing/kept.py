"""Which claims the lab can serve at all, and their sizes and times as far as they can be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.reading import split_url
from testbed.pages.importing.addresses import UnusableError, clean_url, has_user
from testbed.pages.importing.claim import Claim
from testbed.pages.importing.notes import Notes
from testbed.pages.importing.statuses import METHODS, replayed_status, status_problem
from testbed.pages.limits import BODY_BYTES, HEAD_BYTES, mib

_LONGEST_MS = 1e8


@dataclass(frozen=True, slots=True)
class Kept:
    """A claim that can be replayed, with its clean URL and the status to send."""

    claim: Claim
    url: str
    status: int


def keep(claims: Sequence[Claim], notes: Notes) -> list[Kept]:
    """The claims that can be replayed; what is left out or repaired is noted."""
    kept: list[Kept] = []
    seen: set[tuple[str, str]] = set()
    schemes: dict[tuple[str, int], str] = {}
    for claim in claims:
        item = _keep(claim, notes)
        if item is None:
            continue
        key = (item.claim.method, item.url)
        scheme, host, port, _ = split_url(item.url)
        if claim.status == NOT_MODIFIED and key in seen:
            notes.add("Revalidations, answered 304 Not Modified again", item.url)
            kept.append(replace(item, claim=replace(item.claim, body=None), status=NOT_MODIFIED))
        elif claim.from_cache and key in seen:
            notes.add("Requests left out, answered by the cache", item.url)
        elif schemes.setdefault((host, port), scheme) != scheme:
            notes.add("Requests left out, http and https on one port", item.url)
        else:
            if claim.from_cache:
                notes.add("Responses from the cache, sent as from the network", item.url)
            seen.add(key)
            kept.append(item)
    return kept


def _keep(claim: Claim, notes: Notes) -> Kept | None:
    """The claim if the lab can serve it; what is wrong is noted."""
    try:
        url = clean_url(claim.url)
    except UnusableError as error:
        notes.add(f"Requests left out, {error}", claim.url)
        return None
    status = replayed_status(claim.status)
    problem = None
    if claim.method.upper() not in METHODS:
        problem = "methods that cannot be replayed"
    elif status is None:
        problem = status_problem(claim.status)
    elif (len(claim.body) if claim.body is not None else claim.body_size or 0) > BODY_BYTES:
        problem = f"bodies of more than {mib(BODY_BYTES)}"
    if problem is not None or status is None:
        notes.add(f"Requests left out, {problem}", f"{claim.method} {claim.status} {url}")
        return None
    if has_user(claim.url):
        notes.add("URLs without their user information", url)
    return Kept(_sane(claim, url, notes), url, status)


def _sane(claim: Claim, url: str, notes: Notes) -> Claim:
    """The claim with sizes that a body can have."""
    size, decoded, head = claim.body_size, claim.decoded_size, claim.headers_size
    # Codings make a body hardly larger; one that is half as large again is no coding's work.
    most = BODY_BYTES if claim.body is None else 2 * len(claim.body) + 4096
    if size is not None and not 0 <= size <= most:
        notes.add("Sizes that no body has, taken as not recorded", f"{size}: {url}")
        size = None
    if decoded is not None and not 0 <= decoded <= BODY_BYTES:
        notes.add("Sizes that no body has, taken as not recorded", f"{decoded}: {url}")
        decoded = None
    if head is not None and not 0 < head <= HEAD_BYTES:
        notes.add("Sizes that no head has, taken as not recorded", f"{head}: {url}")
        head = None
    request = claim.request_body_size or 0
    return replace(
        claim,
        method=claim.method.upper(),
        body_size=size,
        decoded_size=decoded,
        headers_size=head,
        request_body_size=request if 0 < request <= BODY_BYTES else 0,
        start_ms=time_ms(claim.start_ms),
        dur_ms=time_ms(claim.dur_ms),
    )


def time_ms(ms: float | None) -> float | None:
    """``ms`` if a page load can last so long."""
    return ms if ms is not None and 0 <= ms <= _LONGEST_MS else None
