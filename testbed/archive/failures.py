"""Failures that a page was recorded with: requests that ended without a whole response.

A failure is told in the words of Chromium (net/base/net_error_list.h), such as
``net::ERR_CONNECTION_RESET``, or is the rule that blocked the request (CDP, BlockedReason), such as
``csp``.  What a page can tell apart is its kind, and that is what a replay makes again.
"""

from __future__ import annotations

from typing import Literal

FailureKind = Literal["rule", "kept", "aborted", "unresolved", "refused", "silent", "broken"]
"""What ended a request: a rule of the web once it was sent, one that kept it in the browser, the
page itself, a host without an address, one that listens to nobody, silence, a broken connection."""

PREFIX = "net::ERR_"
ABORTED = f"{PREFIX}ABORTED"
BY_EXTENSION = (f"{PREFIX}BLOCKED_BY_CLIENT", f"{PREFIX}BLOCKED_BY_ADMINISTRATOR")
_BLOCKED = "BLOCKED_BY_"
# All others of this beginning keep a request within the browser.
_ANSWERED = ("BLOCKED_BY_ORB", "BLOCKED_BY_RESPONSE", "FAILED")
_KINDS: dict[str, FailureKind] = {
    "ABORTED": "aborted",
    **dict.fromkeys(("NAME_NOT_RESOLVED", "NAME_RESOLUTION_FAILED", "DNS_TIMED_OUT"), "unresolved"),
    **dict.fromkeys(("CONNECTION_REFUSED", "CONNECTION_FAILED", "ADDRESS_UNREACHABLE"), "refused"),
    **dict.fromkeys(("INTERNET_DISCONNECTED", "NETWORK_ACCESS_DENIED"), "refused"),
    **dict.fromkeys(("TIMED_OUT", "CONNECTION_TIMED_OUT"), "silent"),
    **dict.fromkeys(_ANSWERED, "rule"),
}  # fmt: skip
OWN: tuple[FailureKind, ...] = ("rule", "kept", "aborted")
"""Kinds that are the doing of the page or of the web's rules, whoever replays it."""
UNANSWERED: tuple[FailureKind, ...] = ("silent", "aborted")
"""Kinds of which a server sees a request that it lets wait."""
SERVED: tuple[FailureKind, ...] = ("rule", "aborted", "silent", "broken")
"""Kinds that a server makes; the others but ``kept`` are those of a host and port as a whole."""


def kind_of(failure: str) -> FailureKind:
    """Return the kind of a failure in the browser's words."""
    name = failure.removeprefix(PREFIX)
    if name == failure or (name.startswith(_BLOCKED) and name not in _ANSWERED):
        return "kept"
    return _KINDS.get(name, "broken")
