"""Application protocol of each https origin: which one it is to speak, and whether a load did.

Source: RFC 7301 (ALPN).  A server that offers HTTP/2 also takes HTTP/1.1 from a client that knows
no better; such a load must not count as one over HTTP/2.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.archive.reading import Archive
from testbed.client.interface import LoadError, LoadOrder

H1, H2, H3 = "http/1.1", "h2", "h3"
EVERYWHERE = {"h1": H1, "h2": H2, "h3": H3}
DEFAULT_PORT = ":443"


def wanted_protocols(page: Archive, protocol: str) -> dict[str, str]:
    """Map each https origin (``host`` or ``host:port``) to the protocol that it is to speak.

    Args:
        page: the recorded page; an origin was recorded over HTTP/2 if any of its responses was.
        protocol: "as-recorded", "h1", "h2" or "h3".
    """
    protocols: dict[str, str] = {}
    for entry in page.entries:
        if entry.scheme == "https":
            wanted = EVERYWHERE.get(protocol, H2 if entry.protocol == H2 else H1)
            key = entry.host if entry.port == 443 else f"{entry.host}:{entry.port}"
            protocols[key] = protocols.get(key, H1) if wanted == H1 else wanted
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
