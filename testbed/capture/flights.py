"""Flights of TLS in a segment, in words: ``client-hello+ticket+early,sealed*2``.

Records by their order (RFC 8446 section 5.1): the hellos with what they say of a ticket and of
early data (sections 4.2.10 and 4.2.11), ``alert``, and ``sealed`` for what is encrypted, with how
many such records there are.  Records of the compatibility mode mean nothing and are left out.
"""

from __future__ import annotations

from itertools import groupby

from testbed.capture.tls import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    RECORD_HEADER_BYTES,
    Hello,
    read_hello,
    read_records,
)

_KINDS = {
    CHANGE_CIPHER_SPEC: "", ALERT: "alert", HANDSHAKE: "handshake", APPLICATION_DATA: "sealed",
}  # fmt: skip


def describe_flight(payload: bytes) -> str:
    """Return the records of ``payload``; empty unless it is records of TLS, all of them whole."""
    records = list(read_records(payload))
    whole = sum(RECORD_HEADER_BYTES + size for _, size, _ in records) == len(payload)
    hellos = [read_hello(content) if kind == HANDSHAKE else None for kind, _, content in records]
    cut = any(hello is not None and not hello.whole for hello in hellos)
    if not whole or cut or any(kind not in _KINDS for kind, _, _ in records):
        return ""
    words = [
        word
        for (kind, _, _), hello in zip(records, hellos, strict=True)
        if (word := _KINDS[kind] if hello is None else _describe(hello))
    ]
    counted = ((word, len(list(same))) for word, same in groupby(words))
    return ",".join(word if times == 1 else f"{word}*{times}" for word, times in counted)


def _describe(hello: Hello) -> str:
    said = ["client-hello" if hello.by_client else "server-hello"]
    said += ["ticket"] * hello.ticket + ["early"] * hello.early_data
    return "+".join(said)
