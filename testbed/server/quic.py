"""Replay server over QUIC alone: ``quic_program``, started with the order of what it serves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.archive.head import BODILESS, sent_headers
from testbed.archive.reading import Archive, Entry
from testbed.base import proc
from testbed.base.errors import ConfigurationError, LabError
from testbed.base.namespace import Namespace
from testbed.model import KEPT_ALIVE_S, QuicSpec
from testbed.server.asked import Asked, asked_of, candidates_of
from testbed.server.blocks import alternative_service, check_replayable
from testbed.server.choice import VISITS, to_order
from testbed.server.listeners import Listener
from testbed.server.matching import CHOSEN, CONDITION, KEY_MARK
from testbed.server.nginx import (
    ERROR_LOG,
    TLS_LINK,
    ServerOptions,
    check_certificates,
    lay_certificates,
)
from testbed.server.quic_stack import READY_FILE
from testbed.server.replay_log import LOG_FILE
from testbed.server.think import silence_s

PROGRAM = Path(__file__).with_name("quic_program.py")
ORDER_FILE = "order.json"
# OpenSSL's modules and configuration are looked for in the root, whose OpenSSL is another.
ENVIRONMENT = {"CRYPTOGRAPHY_OPENSSL_NO_LEGACY": "1", "OPENSSL_CONF": "/dev/null"}


def order_of_page(
    archive: Archive, listeners: Sequence[Listener], options: ServerOptions, quic: QuicSpec
) -> dict[str, Any]:
    """Return what ``quic_program`` is told: knobs, the origins over TLS, and all answers.

    Paths of certificates are relative to the order's own folder.

    Raises:
        ConfigurationError: the page cannot be replayed, or an origin has no certificate.
    """
    check_replayable(archive)
    check_certificates(listeners, options.tls)
    secured = [listener for listener in listeners if listener.tls]
    if not secured:
        raise ConfigurationError([f"{archive.name}: no origin is over https"])
    entries, rules = archive.served, archive.rules
    pages = [asked_of(each, entries, rules, validates=options.validates) for each in secured]
    return {
        "initcwnd_packets": quic.initcwnd_packets,
        "congestion_control": None if quic.quic_control == "own" else quic.quic_control,
        "tickets": options.handshakes.tickets,
        "kept_alive_s": KEPT_ALIVE_S,
        "mark": KEY_MARK,
        "condition": CONDITION,
        "chosen": CHOSEN,
        "ready": READY_FILE,
        "log": LOG_FILE,
        "choice": to_order(candidates_of(pages), rules),
        "visits": VISITS,
        "listeners": [
            {
                "early_data": options.handshakes.of(each.host, archive.root_url).early_data,
                **_listener(each, page, options),
            }
            for each, page in zip(secured, pages, strict=True)
        ],
        "answers": {
            number: _answer(entry) | {"think_ms": _think_ms(entry, entry.host, options)}
            for page in pages
            for number, entry in page.entries
        },
    }


def _think_ms(entry: Entry | None, host: str, options: ServerOptions) -> int:
    if entry is not None and (waits_s := silence_s(entry)) is not None:
        return round(waits_s * 1000)
    think = options.think and options.think.of(host)
    if think is None:
        return 0
    return think.delay_ms("miss" if entry is None else f"{entry.method} {entry.url}")


def _listener(listener: Listener, page: Asked, options: ServerOptions) -> dict[str, Any]:
    return {
        "host": listener.host,
        "port": listener.bound_port or listener.port,
        "origin_port": listener.port,
        "addresses": listener.addresses,
        "alternative": alternative_service(listener),
        "certificate": f"{TLS_LINK}/{listener.host}.pem",
        "key": f"{TLS_LINK}/key.pem",
        "has_head": page.has_head,
        "miss_ms": _think_ms(None, listener.host, options),
        "locations": [asdict(each) for each in page.locations],
    }


def _answer(entry: Entry) -> dict[str, Any]:
    bodiless = entry.body is None or entry.status in BODILESS
    return {
        "status": entry.status,
        "headers": [(name.lower(), value) for name, value in sent_headers(entry.headers)],
        "body": None if bodiless else str(Path(str(entry.body)).absolute()),
    }


@contextmanager
def serve_quic(
    namespace: Namespace | None,
    archive: Archive,
    listeners: Sequence[Listener],
    scratch: Path,
    options: ServerOptions,
    quic: QuicSpec,
) -> Iterator[int]:
    """Run the program inside ``namespace`` and yield its process id once it listens everywhere.

    ``scratch`` is made; it holds its order and its log, also after the end.  Without a namespace it
    runs where we do.

    Raises:
        ConfigurationError: the page cannot be replayed.
        LabError: it ended, or did not listen in time.
        MissingError: the root has no aioquic.
    """
    order = order_of_page(archive, listeners, options, quic)
    scratch.mkdir(mode=0o755, parents=True)
    scratch = scratch.absolute()
    (scratch / ORDER_FILE).write_text(json.dumps(order), "utf-8")
    if options.tls is not None:
        lay_certificates(
            scratch / TLS_LINK, options.tls.absolute(), options.handshakes.certificates
        )
    argv = (*options.program, "-I", str(PROGRAM), str(scratch / ORDER_FILE))
    errors = scratch / ERROR_LOG
    with ExitStack() as undo:
        log = undo.enter_context(errors.open("wb"))
        with nullcontext() if namespace is None else namespace.entered():
            child = undo.enter_context(proc.started(argv, stdout=log, stderr=log, env=ENVIRONMENT))
        if not proc.becomes_ready(child, (scratch / READY_FILE).exists):
            said = errors.read_text(errors="replace")[-2000:].strip()
            raise LabError(f"aioquic is not ready: {said}")
        yield child.pid
