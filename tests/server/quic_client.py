"""Client of tests over HTTP/3, run by the Python of the component aioquic: one request each word.

Each word is METHOD PATH in one; they are asked for one after the other, on a connection of their
own each, which takes up the session of the one before, with early data if its server allows.  What
is printed is, in JSON, each one's status, fields, body, whether it was resumed and early, and how
many certificates of issuers the server sent.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):  # type: ignore[misc]  # its types are in the component
    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.http = H3Connection(self._quic)
        self.http._check_content_length = lambda _: None  # it takes HEAD for GET
        self.answer: dict[str, Any] = {"fields": {}, "body": ""}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event: Any) -> None:
        for each in self.http.handle_event(event):
            if isinstance(each, HeadersReceived):
                self.answer["fields"] |= {n.decode(): v.decode("latin-1") for n, v in each.headers}
            if isinstance(each, DataReceived):
                self.answer["body"] += each.data.decode("latin-1")
            if each.stream_ended:
                self.done.set_result(None)

    async def ask(self, method: str, host: str, path: str, conditional: bool) -> dict[str, Any]:
        """The answer to a request."""
        fields = {":method": method, ":scheme": "https", ":authority": host, ":path": path}
        fields |= {"if-none-match": '"x"'} if conditional else {}
        stream = self._quic.get_next_available_stream_id()
        lines = [(name.encode(), value.encode()) for name, value in fields.items()]
        self.http.send_headers(stream, lines, end_stream=True)
        self.transmit()
        await self.done
        tls = self._quic.tls
        return self.answer | {"resumed": tls.session_resumed, "early": tls.early_data_accepted,
                              "issuers": len(tls._peer_certificate_chain)}  # fmt: skip


async def main(authority: str, host: str, port: str, *words: str) -> None:
    """Ask for each."""
    kept: list[Any] = []
    answers = []
    for word in words:
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name=host, cafile=authority,
            session_ticket=kept[-1] if kept else None,
        )  # fmt: skip
        async with connect(
            *("127.0.0.1", int(port)),
            configuration=configuration,
            create_protocol=Client,
            session_ticket_handler=kept.append,
            wait_connected=not kept,
        ) as client:
            method, path, *conditions = word.split(" ")
            answers.append(await client.ask(method, host, path, bool(conditions)))
    print(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
