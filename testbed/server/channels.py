"""Channels of a page beyond plain answers: its WebSockets, and bodies that came in pieces.

nginx leads those requests to ``channel_program``, which is started for pages that have such.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.archive.head import MESSAGES, SWITCHED
from testbed.archive.reading import LARGEST_NUMBER, Archive, Entry
from testbed.model import SocketReplay
from testbed.server.beside_nginx import started_beside

NAME = "channels"
END, LOG = f"{NAME}.sock", f"{NAME}.log"
ASKED = "/socket"
OPCODES = TEXT, _BINARY = 1, 2
PROTOCOL = "sec-websocket-protocol"
# It is a server's own affair how long it says nothing.
PROXY = """\
proxy_pass http://unix:{end}:{name}; proxy_http_version 1.1; proxy_buffering off; \
proxy_buffer_size 16k; proxy_buffers 8 16k; proxy_read_timeout 1d; proxy_send_timeout 1d;"""
SOCKETS = """\
    if ($http_upgrade ~* ^websocket$) {{ rewrite ^ "/{asked}" last; }}
    location = "/{asked}" {{
      {proxy}
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection Upgrade;
      proxy_set_header X-Asked "$scheme://$http_host$request_uri";
    }}
"""


def is_channel(entry: Entry) -> bool:
    """Say whether nginx alone cannot answer so."""
    return entry.status == SWITCHED or bool(entry.pieces)


def socket_rules() -> str:
    """Return the rules of an origin that has WebSockets."""
    proxy = PROXY.format(end=END, name=ASKED)
    return SOCKETS.format(asked=ASKED, proxy=proxy)


def piecewise(answer: int) -> tuple[str, ...]:
    """Return the directives that send response number ``answer`` in its pieces."""
    proxy = PROXY.format(end=END, name=f"/{answer}")
    return (proxy, "proxy_pass_request_headers off;", "proxy_pass_request_body off;",
            'proxy_set_header Content-Length "";')  # fmt: skip


@contextmanager
def serve_channels(
    archive: Archive, folder: Path, tied: tuple[str, ...] = (), *, at_once: bool
) -> Iterator[None]:
    """Run the program in ``folder``, if the page has what it is for; ``tied`` as it is started.

    ``at_once``: it says all as soon as it may, and does not wait as was recorded.

    Raises:
        LabError: it ended, or did not listen in time.
    """
    entries = [(number, each) for number, each in enumerate(archive.entries) if is_channel(each)]
    if not entries:
        yield
        return
    order: dict[str, Any] = {
        "socket": END,
        "ready": f"{NAME}.ready",
        "log": LOG,
        "at_once": at_once,
        "talks": [_talk(each) for _, each in entries if each.status == SWITCHED],
        "streams": {str(n): _stream(each) for n, each in entries if each.status != SWITCHED},
    }
    with started_beside("channel_program", NAME, order, folder, tied):
        yield


def _talk(entry: Entry) -> dict[str, Any]:
    named = {name.lower(): value for name, value in entry.headers}
    frames = None if entry.body is None else str(entry.body.absolute())
    return {"url": entry.url, "frames": frames, "subprotocol": named.get(PROTOCOL, "")}


def _stream(entry: Entry) -> dict[str, Any]:
    media = next((value for name, value in entry.headers if name.lower() == "content-type"), "")
    return {
        "body": None if entry.body is None else str(entry.body.absolute()),
        "pieces": entry.pieces,
        "open": entry.open,
        "type": media,
    }


def waits_ms(entry: Entry) -> tuple[float, ...]:
    """Return the waits with which the server sends parts of what was recorded.

    The page can be replayed.
    """
    if entry.status != SWITCHED or entry.body is None:
        return tuple(ms for ms, _ in entry.pieces)
    return tuple(each["wait_ms"] for each in _read_messages(entry.body))


def talk_problem(entry: Entry) -> str | None:
    """Return why what was said on a WebSocket cannot be replayed; ``None``: it can."""
    if entry.mime != MESSAGES:
        return f"a response with status {entry.status} cannot be made"
    try:
        _read_messages(entry.body)
    except (OSError, LookupError, TypeError, ValueError) as error:
        return f"its messages are none ({error!r})"
    return None


def _read_messages(body: Path | None) -> list[dict[str, Any]]:
    lines = b"" if body is None else body.read_bytes()
    messages: list[dict[str, Any]] = [json.loads(line) for line in lines.split(b"\n") if line]
    for each in messages:
        if not 0 <= each["wait_ms"] < LARGEST_NUMBER or each.get("opcode", TEXT) not in OPCODES:
            raise ValueError(f"a wait of {each['wait_ms']} ms, or opcode {each.get('opcode')}")
        if not isinstance(each["sent"], bool) or not isinstance(each.get("data", ""), str):
            raise TypeError("a message without its direction, or its data")
        if each.get("base64"):
            base64.b64decode(each["data"], validate=True)
    return messages


def read_talks(folder: Path) -> tuple[SocketReplay, ...]:
    """Return the WebSockets that the program in ``folder`` has replayed, in the order of ends."""
    if not (folder / LOG).exists():
        return ()
    lines = (folder / LOG).read_text("utf-8").splitlines()
    return tuple(SocketReplay(**json.loads(line)) for line in lines)
