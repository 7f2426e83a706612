"""The DevTools pipe: commands, answers, events, and its end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.client.chromium.devtools import ClosedError, DevTools, LateError, RefusedError


class End:
    """The browser's end of the pipes."""

    def __init__(self, commands: int, messages: int) -> None:
        self.descriptors = {"commands": commands, "messages": messages}

    def tell(self, *messages: dict[str, Any], text: bytes = b"") -> None:
        """Send messages, all at once, and then ``text``."""
        told = b"".join(
            json.dumps(message, separators=(",", ":")).encode() + b"\0" for message in messages
        )
        os.write(self.descriptors["messages"], told + text)

    def read(self) -> list[dict[str, Any]]:
        text = os.read(self.descriptors["commands"], 1 << 16)
        return [json.loads(part) for part in text.split(b"\0")[:-1]]

    def close(self, name: str) -> None:
        os.close(self.descriptors.pop(name))


@pytest.fixture
def ends() -> Iterator[tuple[DevTools, End]]:
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    end = End(theirs_in, theirs_out)
    yield DevTools(ours_out, ours_in, ("Network.dataReceived",)), end
    for name in tuple(end.descriptors):
        end.close(name)
    os.close(ours_out)
    os.close(ours_in)


def soon() -> float:
    return time.monotonic() + 20.0


def test_commands_go_out_together_and_answers_come_in_any_order(ends: tuple[DevTools, End]) -> None:
    devtools, end = ends
    end.tell({"id": 2, "result": {"b": 2}}, {"id": 1, "result": {"a": 1}})
    answers = devtools.ask(soon(), ("A.one", {"x": 1}), ("A.two", None), session="s")
    assert answers == [{"a": 1}, {"b": 2}]
    assert end.read() == [{"id": 1, "method": "A.one", "params": {"x": 1}, "sessionId": "s"},
                          {"id": 2, "method": "A.two", "params": {}, "sessionId": "s"}]  # fmt: skip


def test_events_wait_until_they_are_taken(ends: tuple[DevTools, End]) -> None:
    devtools, end = ends
    kept = {"method": "Network.dataReceived", "params": {"dataLength": 3}}
    end.tell({"method": "Page.frameResized", "params": {}}, kept, text=b'{"method":"Netw')
    assert devtools.receive(soon())
    assert devtools.take() == [kept]
    assert devtools.take() == []
    end.tell(text=b'ork.dataReceived"}\0')
    assert devtools.receive(soon())
    assert devtools.take() == [{"method": "Network.dataReceived"}]


def test_urgent_events_are_acted_upon_at_once(ends: tuple[DevTools, End]) -> None:
    devtools, end = ends
    seen: list[Any] = []
    devtools.on("Page.loadEventFired", seen.append)
    event = {"method": "Page.loadEventFired", "params": {"timestamp": 1.5}}
    end.tell(event, {"id": 1, "result": {}})
    devtools.ask(soon(), ("Page.enable", None))
    assert seen == [event]


def test_messages_are_understood_however_they_are_written(ends: tuple[DevTools, End]) -> None:
    devtools, end = ends
    end.tell(
        text=b'{ "params": {}, "method": "Network.dataReceived" }\0{ "result": {}, "id": 1 }\0'
    )
    assert devtools.ask(soon(), ("Page.enable", None)) == [{}]
    assert len(devtools.take()) == 1


def test_what_is_refused_is_named(ends: tuple[DevTools, End]) -> None:
    devtools, end = ends
    end.tell({"id": 1, "error": {"code": -32601, "message": "no such thing"}})
    with pytest.raises(RefusedError, match=r"^A\.b: no such thing$"):
        devtools.ask(soon(), ("A.b", None))


def test_no_answer_in_time(ends: tuple[DevTools, End]) -> None:
    devtools, _ = ends
    with pytest.raises(LateError, match=r"no answer to A\.b"):
        devtools.ask(time.monotonic() + 0.01, ("A.b", None))


def test_the_browser_ends(ends: tuple[DevTools, End]) -> None:
    devtools, end = ends
    end.tell({"id": 1, "result": {}})
    end.close("messages")
    assert devtools.ask(soon(), ("A.b", None)) == [{}]  # what it said before counts
    with pytest.raises(ClosedError):
        devtools.receive(soon())
    end.close("commands")
    with pytest.raises(ClosedError):
        devtools.send("A.b")
