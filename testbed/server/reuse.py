"""Connections as the server's log has them: how many requests each carried, and who ended it."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.model import ServedConnection
from testbed.server.lengths import says_close
from testbed.server.replay_log import Answered


def list_connections(answered: Iterable[Answered]) -> tuple[ServedConnection, ...]:
    """Each connection that carried a request, in the order of its first answer."""
    by_number: dict[str, list[Answered]] = {}
    for one in answered:
        by_number.setdefault(one.connection, []).append(one)
    return tuple(
        ServedConnection(
            client=requests[0].client,
            server=requests[0].server,
            requests=len(requests),
            told_close=any(map(says_close, requests)),
            asked_close=any(one.asked_close for one in requests),
            missed=any(one.entry is None for one in requests),
        )
        for requests in by_number.values()
    )
