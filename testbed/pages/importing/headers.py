"""Header fields that nobody vouches for, made such that a server can send them (RFC 9110)."""

from __future__ import annotations

import re

from testbed.archive.head import header_problem
from testbed.pages.importing.notes import Notes
from testbed.pages.limits import HEAD_BYTES
from testbed.pages.recording.exchange import Headers

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean_headers(headers: Headers, url: str, notes: Notes) -> Headers:
    """The headers that can be sent; what is left out or changed is noted.

    Pseudo-headers of HTTP/2 are no headers.  chrome-har joins headers of one name by line feeds.
    """
    kept: list[tuple[str, str]] = []
    size = 0
    for name, joined in headers:
        if name.startswith(":"):
            continue
        if header_problem(name, "") is not None:
            notes.add("Headers left out, names that are none", f"{name} of {url}")
            continue
        for value in joined.split("\n"):
            clean = _CONTROLS.sub("", value).strip(" \t")
            if clean != value.strip("\r \t"):
                notes.add("Headers without their control characters", f"{name} of {url}")
            size += len(name) + len(clean) + 4
            if size > HEAD_BYTES:
                notes.add(f"Headers left out, heads of more than {HEAD_BYTES} bytes", url)
            elif header_problem(name, clean) is not None:
                notes.add("Headers left out, values that nginx cannot send", f"{name} of {url}")
            else:
                kept.append((name, clean))
    return tuple(kept)


def without(headers: Headers, name: str) -> Headers:
    """The headers but those called ``name`` (lower case)."""
    return tuple(pair for pair in headers if pair[0].lower() != name)
