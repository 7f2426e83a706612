"""Claims of a file about a page load, not yet believed, and notes on what an import repaired."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from testbed.pages.exchange import Headers

EXAMPLES = 3
_LONGEST_NOTE = 100


class Notes:
    """Collects what happened; the sentences come in the order of the first of each kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def add(self, what: str, example: str = "") -> None:
        """Count ``what``; ``example`` says where, and is kept if it is one of the first."""
        self._counts[what] = self._counts.get(what, 0) + 1
        kept = self._examples.setdefault(what, [])
        shown = printable(example)
        if shown and len(kept) < EXAMPLES and shown not in kept:
            kept.append(shown)

    def join(self, others: Notes) -> None:
        """Add what ``others`` has, as if it had been told here."""
        for what, count in others._counts.items():
            self._counts[what] = self._counts.get(what, 0) + count
            kept = self._examples.setdefault(what, [])
            kept += [shown for shown in others._examples[what] if shown not in kept]
            del kept[EXAMPLES:]

    def sentences(self) -> tuple[str, ...]:
        """``Requests left out, file: URLs: 3 (file:///a, file:///b, ...)`` and so on."""
        found = []
        for what, count in self._counts.items():
            examples = self._examples[what]
            more = ", ..." if examples and count > len(examples) else ""
            shown = f" ({', '.join(examples)}{more})" if examples else ""
            found.append(f"{what}: {count}{shown}.")
        return tuple(found)


def printable(text: str, longest: int = _LONGEST_NOTE) -> str:
    """``text`` in printable ASCII and not too long, so that a terminal can show it."""
    plain = text[:longest].encode("ascii", "backslashreplace").decode()
    shown = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


@dataclass(frozen=True, slots=True)
class Claim:
    """One request and its response; ``None`` is not recorded, as is a negative number.

    Attributes:
        body: ``None`` when not recorded.
        body_is_decoded: whether ``body`` is what the browser saw, as in a HAR, or what was sent.
        body_size: bytes of the body as transferred.
        size_is_exact: ``body_size`` was counted, not estimated from a size with the head.
        initiator: URL of what led here.
        initiator_kind: ``parser``, ``script`` or nothing.
        how: as ``Exchange.how``, where the file says it; else nothing.
        is_frame: it was loaded as a document of its own.
        after_load: whether it was asked for after the load event; ``None`` leaves it to the times.
        from_cache: it was not transferred in this load.
    """

    url: str
    method: str = "GET"
    status: int = 200
    protocol: str = ""
    request_headers: Headers = ()
    request_body_size: int | None = None
    headers: Headers = ()
    headers_size: int | None = None
    body: bytes | None = None
    body_is_decoded: bool = False
    body_size: int | None = None
    size_is_exact: bool = True
    decoded_size: int | None = None
    mime: str = ""
    initiator: str | None = None
    initiator_kind: str = ""
    how: str = ""
    is_frame: bool = False
    start_ms: float | None = None
    dur_ms: float | None = None
    after_load: bool | None = None
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What an importer read.  ``url`` is the page's own, if the file or the caller names it.

    ``claims`` are in the order of the file, or of the requests where the file tells it;
    ``is_ordered`` says that it is the latter, whatever the times say.
    ``is_session`` says that it may be more than one load, as that of a proxy which knows no pages;
    ``other_pages`` are ids of further pages that the file has requests of.
    """

    title: str
    url: str | None
    recorded: date
    source: str
    claims: tuple[Claim, ...]
    notes: Notes
    load_ms: float | None = None
    pinned: bool = False
    is_ordered: bool = False
    is_session: bool = False
    other_pages: tuple[str, ...] = ()


def media_type(value: str) -> str:
    """The media type of a Content-Type value, in lower case, without parameters."""
    return value.partition(";")[0].strip().lower()
