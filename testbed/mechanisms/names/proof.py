"""Look-ups of names: each host was asked for on the link, or none was (knob ``dns``; RFC 1035)."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.capture.lookups import read_lookups
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

SHOWN = 3


@check("names", "capture", "condition", "hosts", source="RFC 1035")
def check_lookups(seen: Evidence) -> Iterator[str]:
    """Under ``dns = resolver`` every host was asked for before it was gone to, else none was."""
    lookups = read_lookups(seen.capture, seen.hosts)
    if seen.condition.dns == "hosts":
        if lookups.questions:
            yield f"dns = hosts, but {lookups.questions} questions for names crossed the link"
    elif not seen.has("load"):
        return  # a command asks for what it likes
    elif not lookups.questions:
        yield "dns = resolver, but no name was asked for on the link"
    elif lookups.unasked:
        more = " ..." if len(lookups.unasked) > SHOWN else ""
        yield (
            f"dns = resolver, but {len(lookups.unasked)} of {len(lookups.contacted)} hosts "
            "were gone to without a question on the link: "
            f"{', '.join(lookups.unasked[:SHOWN])}{more}"
        )
