"""What each combination of mechanisms has to show on the wire, whatever kernel it runs on."""

from __future__ import annotations

from typing import Any

from wings.server_loads.tests.mechanisms import scenario

SMALL: dict[str, Any] = {"syn_backlog": 16, "listen_backlog": 2}
"""Queues with a limit each, as the source's kernel had."""
EQUAL: dict[str, Any] = {"syn_backlog": 2, "listen_backlog": 2}
"""Queues of one backlog, as a kernel of today has."""
ROOM = SMALL["listen_backlog"] + 1

SILENCE = ["client S"]
REFUSED = ["client S", "server RA"]
FORGOTTEN = ["client S", "server SA", "client A"]
RESET = ["client S", "server SA", "client A", "server R"]
ACCEPTED = ["client S", "server SA", "client A", "server RA"]
"""The reset is of a listener that is closed with the connection in its queue."""

AT_THE_SYN = {
    "default": SILENCE, "abort": SILENCE, "reserv": SILENCE, "abort rst-syn": REFUSED,
    "reserv rst-syn": REFUSED, "no-syn-drop": RESET, "default rst-fin": SILENCE,
    "abort rst-syn rst-fin": REFUSED,
}  # fmt: skip
"""A SYN comes while the accept queue is full."""
AT_THE_ACK = {
    "default": FORGOTTEN, "abort": RESET, "reserv": SILENCE, "abort rst-syn": RESET,
    "reserv rst-syn": REFUSED, "no-syn-drop": RESET, "default rst-fin": FORGOTTEN,
    "abort rst-syn rst-fin": RESET,
}  # fmt: skip
"""A handshake opens while the accept queue has room, and would end when it has none."""
COMES_TO = {str(SILENCE): "timeout", str(REFUSED): "ECONNREFUSED", str(RESET): "ECONNRESET"}
"""What a client's connect(2), or its recv(2) after it, comes to."""
BEGINS = ["client S", "server SA"]
GRACEFUL = {
    scenario.ENDING: [*BEGINS, "client A.", "client FA", "server FA"],
    scenario.HALF: [*BEGINS, "client FA", "server FA"],
}
ABRUPT = {
    scenario.ENDING: [*BEGINS, "client A.", "client FA", "server R"],
    scenario.HALF: [*BEGINS, "client FA", "server R"],
}
WITH_DATA = [*BEGINS, "client FA.", "server FA"]
"""Without mere acknowledgements: whether one goes by itself or with a FIN is a matter of time."""


_ALL = len(scenario.FLOOD)
_REQUESTS = scenario.PUBLISHED.syn_backlog + 1
_ACCEPTED = scenario.PUBLISHED.listen_backlog + 1
FLOODED = {
    "default": (_REQUESTS, 0, 0), "abort": (_REQUESTS, 0, _REQUESTS - _ACCEPTED),
    "reserv": (_ACCEPTED, 0, 0),
    "abort rst-syn": (_REQUESTS, _ALL - _REQUESTS, _REQUESTS - _ACCEPTED),
    "reserv rst-syn": (_ACCEPTED, _ALL - _ACCEPTED, 0), "no-syn-drop": (_ALL, 0, _ALL - _ACCEPTED),
}  # fmt: skip
"""Of handshakes that all open at once: how many are answered, refused, and reset at their ACK."""


def without_acks(said: list[str]) -> list[str]:
    """All but mere acknowledgements."""
    return [segment for segment in said if not segment.endswith(" A")]


def check_wire(words: str, seen: dict[str, Any]) -> None:
    """Hold what was seen with ``SMALL`` queues against what the mechanisms promise."""
    said, outcomes = seen["conversations"], seen["outcomes"]
    filled = {f"filling {i}": "ok" for i in range(ROOM)}
    assert filled.items() <= outcomes.items()
    assert said[str(scenario.MORE)] == AT_THE_SYN[words]
    assert said[str(scenario.AGAIN)] == AT_THE_SYN[words]
    assert outcomes["more"] == outcomes["again"] == COMES_TO[str(AT_THE_SYN[words])]
    for i in range(scenario.CRAFTED_COUNT):
        expected = ACCEPTED if i < ROOM else AT_THE_ACK[words]
        assert said[str(scenario.CRAFTED + i)] == expected
    resets = "rst-fin" in words
    for port, expected in (ABRUPT if resets else GRACEFUL).items():
        assert without_acks(said[str(port)]) == expected
    assert without_acks(said[str(scenario.WITH_DATA)]) == WITH_DATA
    assert outcomes["closed"] == ("ECONNRESET" if resets else "")
    assert outcomes["half-closed"] == ("ECONNRESET" if resets else "timeout")
    assert outcomes["with data"] == "last"
    assert seen["wrong_checksums"] == 0
    assert seen["undone"]
