"""Replay of what a page hears over a connection that stays: WebSockets, and bodies in pieces.

A program of its own, behind nginx and over a Unix socket, which is started for pages that have
such.  Its order is a file of JSON (``channels``).  Standard library only.

Source: RFC 6455; https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run by its path, it finds what it imports beside itself
    sys.path.insert(0, str(Path(__file__).parents[2]))

from testbed.server.matching import shared_length

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN, MASKED = 0x80, 0x80
NORMAL = (1000).to_bytes(2, "big")
REFUSED = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Talk:
    """One WebSocket as it was replayed: how many messages went each way, and were recorded to."""

    url: str
    answered: str
    said: int = 0
    said_of: int = 0
    heard: int = 0
    heard_of: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def line(self) -> str:
        """What the log has of it."""
        told = {name: getattr(self, name) for name in LOGGED}
        return json.dumps(told) + "\n"


LOGGED = ("url", "answered", "said", "said_of", "heard", "heard_of")


class Replayer:
    """Answers everything that nginx asks it for, by its order."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.taken: dict[int, int] = {}
        self.talks: dict[int, Talk] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of nginx, which carries one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            fields = {n.lower(): v.strip() for n, _, v in (each.partition(":") for each in lines)}
            name = first.split(" ")[1].removeprefix("/").partition("?")[0]
            if name in self.order["streams"]:
                await self._stream(self.order["streams"][name], reader, writer)
            else:
                await self._talk(fields, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the browser has left
        finally:
            writer.close()

    async def _pause(self, wait_ms: float) -> None:
        if wait_ms and not self.order["at_once"]:
            await asyncio.sleep(wait_ms / 1000)

    async def _stream(
        self,
        stream: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        body = Path(stream["body"]).read_bytes() if stream["body"] else b""
        length = "" if stream["open"] else f"Content-Length: {len(body)}\r\n"
        media = f"Content-Type: {stream['type']}\r\n" if stream["type"] else ""
        head = f"HTTP/1.1 200 OK\r\n{media}{length}Connection: close\r\n\r\n"
        writer.write(head.encode("latin-1"))
        at = 0
        for wait_ms, size in stream["pieces"]:
            await self._pause(wait_ms)
            writer.write(body[at : at + size])
            await writer.drain()
            at += size
        if stream["open"]:
            await reader.read()  # until the browser has had enough

    async def _talk(
        self, fields: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        asked = fields.get("x-asked", "")
        number = self._choose(asked)
        if number is None:
            writer.write(REFUSED)
            return
        recorded = self.order["talks"][number]
        data = Path(recorded["frames"]).read_bytes() if recorded["frames"] else b""
        frames = [json.loads(line) for line in data.split(b"\n") if line]
        messages = [each for each in frames if "opcode" in each]
        heard_of = sum(each["sent"] for each in messages)
        talk = Talk(asked, recorded["url"], said_of=len(messages) - heard_of, heard_of=heard_of)
        self.talks[id(writer)] = talk
        writer.write(_accept(fields["sec-websocket-key"], recorded["subprotocol"]))
        saying = asyncio.create_task(self._say(frames, talk, writer))
        try:
            await _hear(talk, reader, writer)
        finally:
            saying.cancel()
            if self.talks.pop(id(writer), None):
                self._log(talk)

    def _choose(self, url: str) -> int | None:
        """Return the recorded socket that answers: the next of this URL, else of the nearest."""
        talks = self.order["talks"]
        path = url.partition("?")[0]
        near = [n for n, each in enumerate(talks) if each["url"].partition("?")[0] == path]
        if not near:
            return None
        best = max(near, key=lambda n: (talks[n]["url"] == url,
                                        shared_length(talks[n]["url"], url)))  # fmt: skip
        same = [n for n in near if talks[n]["url"] == talks[best]["url"]]
        turn = self.taken.get(best, 0)
        self.taken[best] = turn + 1
        return same[min(turn, len(same) - 1)]

    async def _say(
        self, frames: list[dict[str, Any]], talk: Talk, writer: asyncio.StreamWriter
    ) -> None:
        """Say what was recorded, each message behind those of the page that came before it."""
        due = 0
        for each in frames:
            if each.get("sent"):
                due += 1
                while talk.heard < due:
                    talk.moved.clear()
                    await talk.moved.wait()
                continue
            await self._pause(each["wait_ms"])
            if "opcode" in each:
                data = base64.b64decode(each["data"]) if "base64" in each else each["data"].encode()
                writer.write(_frame(each["opcode"], data))
                talk.said += 1
            else:
                writer.write(_frame(CLOSE, NORMAL))
            await writer.drain()

    def _log(self, talk: Talk) -> None:
        with Path(self.order["log"]).open("a", encoding="utf-8") as file:
            file.write(talk.line())

    def close(self) -> None:
        """Note what is still open."""
        for talk in self.talks.values():
            self._log(talk)
        self.talks.clear()


async def _hear(talk: Talk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Count the page's messages until it closes the connection; answer what asks for an answer."""
    while True:
        first, second = await reader.readexactly(2)
        size = second & ~MASKED
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        mask = await reader.readexactly(4 if second & MASKED else 0)
        data, opcode = await reader.readexactly(size), first & 0x0F
        if opcode in (CONTINUED, TEXT, BINARY) and first & FIN:
            talk.heard += 1
            talk.moved.set()
        elif opcode == PING:
            writer.write(_frame(PONG, _unmasked(data, mask)))
        elif opcode == CLOSE:
            writer.write(_frame(CLOSE, _unmasked(data[:2], mask)))
            return


def _unmasked(data: bytes, mask: bytes) -> bytes:
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


def _frame(opcode: int, data: bytes) -> bytes:
    """Return a message in one frame, unmasked as servers send them (RFC 6455 section 5.2)."""
    size = len(data)
    if size < 126:
        length = bytes([size])
    elif size < 1 << 16:
        length = b"\x7e" + size.to_bytes(2, "big")
    else:
        length = b"\x7f" + size.to_bytes(8, "big")
    return bytes([FIN | opcode]) + length + data


def _accept(key: str, subprotocol: str) -> bytes:
    """Return the answer to an opening handshake (RFC 6455 section 4.2.2)."""
    digest = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()  # noqa: S324
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Accept: {digest}"]  # fmt: skip
    lines += [f"Sec-WebSocket-Protocol: {subprotocol}"] if subprotocol else []
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


async def _run(order: dict[str, Any]) -> None:
    replayer, ended = Replayer(order), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await asyncio.start_unix_server(replayer.serve, order["socket"])
    Path(order["ready"]).touch()
    await ended.wait()
    replayer.close()


if __name__ == "__main__":
    asyncio.run(_run(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
