"""Application protocol of each https origin: which one it is to speak, and whether a load did.

Source: RFC 7301 (ALPN).  A server that offers HTTP/2 also takes HTTP/1.1 from a client that knows
no better; such a load must not count as one over HTTP/2.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.archive.reading import Archive
from testbed.client.interface import LoadError, LoadOrder

H1, H2 = "http/1.1", "h2"
EVERYWHERE = {"h1": H1, "h2": H2}
DEFAULT_PORT = ":443"


def wanted_protocols(page: Archive, protocol: str) -> dict[str, str]:
    """Map each https origin (``host`` or ``host:port``) to the protocol that it is to speak.

    Args:
        page: the recorded page; an origin was recorded over HTTP/2 if any of its responses was.
        protocol: "as-recorded", "h1" or "h2".
    """
    protocols: dict[str, str] = {}
    for entry in page.entries:
        if entry.scheme == "https":
            recorded = EVERYWHERE.get(protocol, entry.protocol)
            key = entry.host if entry.port == 443 else f"{entry.host}:{entry.port}"
            protocols[key] = H2 if H2 in (recorded, protocols.get(key)) else H1
    return protocols


def require_protocols(order: LoadOrder, spoken: Iterable[tuple[str, str | None]]) -> None:
    """Hold each request's protocol (``None``: not known) against what was asked for.

    Args:
        order: what was asked for.
        spoken: URL and protocol of each request.

    Raises:
        LoadError: an origin spoke another protocol.
    """
    expected = wanted_protocols(order.archive, order.protocol)
    wrong: dict[str, tuple[str, str]] = {}
    for url, protocol in spoken:
        origin = _origin(url)
        if origin in expected and protocol is not None and protocol.lower() != expected[origin]:
            wrong[origin] = (protocol, expected[origin])
    if wrong:
        mismatches = ", ".join(
            f"{o} spoke {actual}, not {wanted}" for o, (actual, wanted) in wrong.items()
        )
        raise LoadError(
            f"another protocol than asked for (protocol = {order.protocol!r}): {mismatches}"
        )


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    return authority.removesuffix(DEFAULT_PORT).lower() if scheme == "https" else ""
