"""A client of the browser's DevTools protocol over two pipes: commands out, answers and events in.

Messages are JSON with a NUL behind each (``--remote-debugging-pipe``).  Events wait unparsed until
they are taken, and those that nobody asked for are dropped by their first bytes: a load has up to
some thousand of them.

Source: Chrome DevTools Protocol; Chromium, content/browser/devtools/devtools_pipe_handler.cc.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Collection
from typing import Any

from testbed.base.errors import TrialError

Event = dict[str, Any]
PIECE_BYTES = 1 << 16  # what a pipe holds
EVENT = b'{"method":"'


class ClosedError(TrialError):
    """The browser has closed its end of the pipes: it ended."""


class LateError(TrialError):
    """What was waited for did not come in time."""


class RefusedError(TrialError):
    """The browser refused a command; the message is its own."""


class DevTools:
    """One browser; a session is one page or worker of it, and no session the browser itself.

    Args:
        commands: descriptor that the browser's commands are written to.
        messages: descriptor that its messages are read from.
        kept: names of the events that ``take`` gives.
    """

    def __init__(self, commands: int, messages: int, kept: Collection[str] = ()) -> None:
        self._commands = commands
        self._messages = messages
        self._kept = frozenset(name.encode() for name in kept)
        self._urgent: dict[bytes, Callable[[Event], None]] = {}
        self._waiting: list[bytes] = []
        self._answers: dict[int, Event] = {}
        self._awaited: set[int] = set()
        self._sent = 0
        self._begun: list[bytes] = []  # a message of which there is no end yet
        self._poll = select.poll()
        self._poll.register(messages, select.POLLIN)

    def on(self, name: str, act: Callable[[Event], None]) -> None:
        """Call ``act`` with each event ``name`` as soon as it has been read."""
        self._urgent[name.encode()] = act

    def send(
        self, method: str, params: dict[str, Any] | None = None, session: str | None = None
    ) -> int:
        """Send a command whose answer nobody waits for, and return its number.

        Raises:
            ClosedError: the browser has ended.
        """
        self._sent += 1
        message: Event = {"id": self._sent, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        try:
            while text:
                text = text[os.write(self._commands, text) :]
        except BrokenPipeError:
            raise ClosedError("the browser has closed its DevTools pipe") from None
        return self._sent

    def ask(
        self,
        deadline: float,
        *commands: tuple[str, dict[str, Any] | None],
        session: str | None = None,
    ) -> list[Event]:
        """Send commands, all at once, and return their answers.

        Args:
            deadline: the moment of ``time.monotonic`` until which to wait.
            commands: name and parameters of each.
            session: whose they are.

        Raises:
            RefusedError: the browser refused one of them.
            LateError: it did not answer in time.
            ClosedError: it has ended.
        """
        numbers = [self.send(method, params, session) for method, params in commands]
        self._awaited.update(numbers)
        return [
            self.answer(number, deadline, method)
            for number, (method, _) in zip(numbers, commands, strict=True)
        ]

    def answer(self, number: int, deadline: float, method: str) -> Event:
        """Wait for the answer to the command of this number; raises what ``ask`` does."""
        self._awaited.add(number)
        while number not in self._answers:
            if not self.receive(deadline):
                raise LateError(f"no answer to {method}")
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RefusedError(f"{method}: {answer['error'].get('message', answer['error'])}")
        result: Event = answer["result"]
        return result

    def receive(self, deadline: float) -> bool:
        """Read what has come, or wait for it; whether anything came before the ``deadline``.

        Raises:
            ClosedError: the browser has ended.
        """
        left_ms = 1000 * (deadline - time.monotonic())
        if left_ms <= 0 or not self._poll.poll(left_ms):
            return False
        piece = os.read(self._messages, PIECE_BYTES)
        if not piece:
            raise ClosedError("the browser has closed its DevTools pipe")
        first, *others = piece.split(b"\0")
        self._begun.append(first)
        for other in others:
            self._sort(b"".join(self._begun))
            self._begun = [other]
        return True

    def take(self) -> list[Event]:
        """Return the kept events that have been read since the last time, oldest first."""
        messages, self._waiting = self._waiting, []
        return [json.loads(message) for message in messages]

    def _sort(self, message: bytes) -> None:
        if message.startswith(EVENT):
            name = message[len(EVENT) : message.find(b'"', len(EVENT))]
        else:
            document = json.loads(message)
            number = document.get("id")
            if number is not None:
                if number in self._awaited:
                    self._awaited.remove(number)
                    self._answers[number] = document
                return
            name = document["method"].encode()
        if name in self._kept:
            self._waiting.append(message)
        act = self._urgent.get(name)
        if act is not None:
            act(json.loads(message))
