"""Opening of a client: what of a condition its process has to know when it starts.

Guests whose clients open alike may go on from one image: what is not in here is told later, with
the order of the load.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from testbed.model.asked import Condition, Ip, KeyShare

_SEPARATOR = ","
_IPS: tuple[Ip, ...] = ("6", "dual", "dual-broken")
_SHARES: tuple[KeyShare, ...] = ("x25519", "x25519mlkem768")


@dataclass(frozen=True, slots=True)
class Opening:
    """What a client's process knows from its start; without a client there is nothing to start."""

    client: str = ""
    """The client's name."""
    ip: Ip = "4"
    """Which IP the link has."""
    quic: bool = False
    """Whether every https origin is asked over QUIC, at once and without TCP."""
    early_data: bool = False
    """Whether a resumed session's first flight carries requests."""
    key_share: KeyShare = "browser"
    """What the hello is to have as key shares."""
    keys: bool = False
    """Whether the sessions' secrets are written down, beside the capture that they open.

    They are for pages over TLS; a browser that loads another would draw other times by it."""

    @property
    def text(self) -> str:
        """The client, and each word that is not as usual, such as ``chromium,6,quic,keys``."""
        unusual = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }
        return _SEPARATOR.join(name if of is True else of for name, of in unusual.items())


NO_OPENING = Opening()
"""Of what has no client, and of a client that is told nothing."""


def opening_of(condition: object) -> Opening:
    """Return what a client of ``condition`` has to know, but for its page's keys.

    Only page loads have one.
    """
    if not isinstance(condition, Condition):
        return NO_OPENING
    return Opening(
        client=condition.client,
        ip=condition.link.ip,
        quic=condition.protocol == "h3",
        early_data=condition.early_data,
        key_share=condition.key_share,
    )


def parse_opening(text: str) -> Opening:
    """Return the opening that has ``text``.

    Raises:
        ValueError: nothing has it.
    """
    client, *words = text.split(_SEPARATOR)
    opening = Opening(
        client,
        next((ip for ip in _IPS if ip in words), "4"),
        "quic" in words,
        "early_data" in words,
        next((share for share in _SHARES if share in words), "browser"),
        "keys" in words,
    )
    if opening.text != text:
        raise ValueError(f"{text!r} is no client's opening")
    return opening
