"""Remarks beside a ladder: what a scenario's applications called, and what they saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wings.scenarios.measurement import Call
from wings.scenarios.script import Action, Script
from wings.scenarios.words import ADDRESSES, CALLS

_WAITING = ("accept", "recv", "tls")
"""Calls that a reader looks for where they end: what they waited for has come then."""
_NOTHING_SAID = "ok"


def remarks_of(
    script: Script, calls: Sequence[Call], one_way_ns: int
) -> Iterator[tuple[str, int, str]]:
    """Yield host, time in ns, and text of what its application did or saw.

    A call during which packets were under way is at its start and at its end, unless it waited.
    """
    actions = {action.line: action for action in script.actions}
    for call in calls:
        if call.actor not in ADDRESSES:
            continue
        action = actions.get(call.line)
        if action is None or action.text != call.text:
            yield call.actor, call.at_ns, call.text.removeprefix(f"{call.actor} ")
        elif action.verb in _WAITING:
            yield call.actor, call.ended_ns, f"{_said(action)} = {call.result}"
        elif call.ended_ns - call.at_ns < one_way_ns // 2:
            yield call.actor, call.at_ns, _with_result(action, call.result)
        else:
            yield call.actor, call.at_ns, f"{_said(action)} …"
            yield call.actor, call.ended_ns, f"… {action.verb}() = {call.result}"


def _with_result(action: Action, result: str) -> str:
    said = _said(action)
    if action.verb == "count":
        return f"{said} +{result}"
    if action.verb == "info":
        return f"{said} {result}"
    declared = CALLS[action.verb]
    plain = result == _NOTHING_SAID and (not declared.result or action.verb in ("set", "sysctl"))
    return said if plain else f"{said} = {result}"


def _said(action: Action) -> str:
    """Return a call as programmers write it."""
    words, verb = action.words, action.verb
    if verb == "sendto":
        return f"sendto({words[2]})"
    if verb == "send":
        return f"send({words[1]})"
    if verb == "hello":
        early = action.options.get("early")
        return f"hello, early data {early}" if early else "hello"
    if verb == "listen":
        fastopen = action.options.get("fastopen")
        return f"listen(fastopen={fastopen})" if fastopen else "listen()"
    if verb == "connect":
        return "connect(fastopen)" if "fastopen" in words else "connect()"
    if verb == "set":
        return f"setsockopt({words[1]})"
    if verb == "abort":
        return "close() with RST"
    return {
        "early": f"early data {' '.join(words)}",
        "sysctl": f"sysctl {' '.join(words)}",
        "count": words[0] if words else "",
        "info": f"TCP_INFO: {words[1] if len(words) > 1 else ''} =",
        "key": "Fast Open key " + " and ".join(f"{key[:4]}…" for key in words),
        "window": f"initial window {words[0] if words else ''}",
    }.get(verb, f"{verb}()")
