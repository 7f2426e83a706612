"""What it means that the browser could not load a page, and what to do about it.

Source: Chromium, net/base/net_error_list.h.
"""

from __future__ import annotations

_REMEDIES = {
    "ERR_NAME_NOT_RESOLVED": "no such host; check its name, or your network",
    "ERR_INTERNET_DISCONNECTED": "there is no network",
    "ERR_ADDRESS_UNREACHABLE": "the host cannot be reached; check your network",
    "ERR_CONNECTION_REFUSED": "nothing listens there; check host and port",
    "ERR_CONNECTION_TIMED_OUT": "the host does not answer; check host and port",
    "ERR_EMPTY_RESPONSE": "the server closed the connection without an answer",
    "ERR_CONNECTION_RESET": "the server closed the connection",
    "ERR_SSL_PROTOCOL_ERROR": "the server does not speak TLS there; try http://",
    "ERR_INVALID_RESPONSE": "the server does not speak HTTP there",
    "ERR_INVALID_HTTP_RESPONSE": "the server does not speak plain HTTP there; try https://",
    "ERR_TOO_MANY_REDIRECTS": "it redirects without an end",
    "ERR_UNSAFE_PORT": "browsers refuse this port; use another",
    "ERR_ABORTED": "it is no page but a download, or has no content",
    "ERR_NETWORK_ACCESS_DENIED": "it is, or leads to, an address of this machine or its network; "
    "--allow-private HOST lets it",
    "the browser ended": "something else stopped it, or it ran out of memory",
    "the page crashed": "it may need more memory than there is",
}
_DISTRUSTED = "its certificate is not trusted; --spki FILE trusts an authority of your own"


def describe_failure(said: str) -> str:
    """A sentence of the browser's words ``said``, such as ``net::ERR_FAILED at http://x.test/``."""
    reason = said.partition(" at ")[0]
    name = reason.removeprefix("net::")
    remedy = _DISTRUSTED if name.startswith("ERR_CERT_") else _REMEDIES.get(name)
    return f"the browser could not load it: {reason}" + (f" ({remedy})" if remedy else "")
