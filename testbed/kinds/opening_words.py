"""Openings of connections in experiment files: knobs that exclude others, or that clients lack.

What is swept meets everything else that is swept, so one value on each side is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from testbed.kinds.experiment_file import ExperimentFile, KeyPath, toml_text
from testbed.model import Condition, QuicSpec

TICKET_LIFE_S = 604_800.0
"""The longest that tickets may live (RFC 8446 section 4.6.1)."""
_AIOQUIC, _OWN = "aioquic", "own"
_LIFE_OF_AIOQUIC_S = 86_400.0  # aioquic/tls.py; none can be asked of it

_TAKE_QUIC = 'set web_server = "nginx-quic"'
_TLS_1_3 = "leave tls_version out"
_EXCLUDED: tuple[tuple[str, Any, KeyPath, Any, str], ...] = (
    *(("web_server", _AIOQUIC, ("protocol",), other, 'it speaks HTTP/3 alone; set protocol = "h3"')
      for other in ("as-recorded", "h1", "h2")),
    ("key_share", "x25519mlkem768", ("web_server",), _AIOQUIC,
     f"aioquic does not know the group; {_TAKE_QUIC}"),
    ("protocol", "h3", ("web_server",), "nginx", f"the root's nginx has none; {_TAKE_QUIC}"),
    ("protocol", "h3", ("tls_version",), "1.2", f"QUIC has TLS 1.3 alone (RFC 9001); {_TLS_1_3}"),
    ("protocol", "h3", ("link", "ip"), "dual-broken",
     'a browser tries the other address over TCP alone (RFC 8305); take ip = "dual"'),
    ("protocol", "h3", ("tcp", "tfo"), True, "no connection is TCP's; leave tcp.tfo out"),
    ("early_data", True, ("tls_version",), "1.2", f"TLS 1.3 alone has early data; {_TLS_1_3}"),
    ("early_data", True, ("tls_resumption",), False,
     "only a resumed session has early data; set tls_resumption = true"),
    ("key_share", "x25519mlkem768", ("web_server",), "nginx",
     f"the root's nginx does not know the group; {_TAKE_QUIC}"),
    ("key_share", "x25519mlkem768", ("tls_version",), "1.2",
     f"TLS 1.3 alone has the group; {_TLS_1_3}"),
)  # fmt: skip
_OF_ONE_VISIT: tuple[KeyPath, ...] = (
    ("traffic",), ("link", "changes"),
    *(("link", name) for name in ("trace_down", "trace_up", "hop_down", "hop_up")),
)  # fmt: skip
_DEFAULTS = {"tfo": False, "ip": "4"} | {each.name: each.default for each in fields(Condition)}
_KNOBS_OF_CLIENTS = ("visits", "tls_resumption", "early_data", "key_share", "protocol")
_OF_CLIENTS = {name: _DEFAULTS[name] for name in _KNOBS_OF_CLIENTS}


def check_openings(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each way of opening connections that no server and client have."""
    for name, value, beside, other, why in _EXCLUDED:
        if (
            _has(file, name, value)
            and other in file.all_of(beside, _DEFAULTS[beside[-1]])
            and not _leaves_out(file, {name: value, beside[-1]: other})
        ):
            met = f"{'.'.join(beside)} = {toml_text(other)}"
            yield f"{file.place((name,))}: {toml_text(value)} beside {met}: {why}"
    limits = file.all_of(("tcp", "requests_per_connection"), None)
    if _has(file, "protocol", "h3") and any(isinstance(limit, int) for limit in limits):
        yield (
            f"{file.place(('tcp', 'requests_per_connection'))}: is held against TCP connections, "
            'and protocol = "h3" has none; leave it out'
        )
    yield from _check_quic(file)
    many = any(number > 1 for number in file.all_of(("visits",), 1))
    if many:
        yield from _check_beside_visits(file)
    if many and _has(file, "tls_resumption", True):
        longest = max(file.all_of(("idle_s",), _DEFAULTS["idle_s"]))
        life = _LIFE_OF_AIOQUIC_S if _has(file, "web_server", _AIOQUIC) else TICKET_LIFE_S
        if longest > life:
            yield (
                f"{file.place(('idle_s',))}: {longest:g} s are beyond a ticket's life of "
                f"{life:g} s; take less, or leave tls_resumption out"
            )


def _check_quic(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each knob of QUIC that a web server's QUIC does not have."""
    for knob in fields(QuicSpec):
        path = ("quic", knob.name)
        for value in file.all_of(path, _OWN):
            servers = () if value == _OWN else file.all_of(("web_server",), "nginx")
            for server in servers:
                met = {"web_server": server, knob.name: value}
                if server != _AIOQUIC and not _leaves_out(file, met):
                    yield (
                        f"{file.place(path)}: {toml_text(value)} beside web_server = "
                        f'{toml_text(server)}: its QUIC cannot be set; set web_server = "aioquic"'
                    )


def _check_beside_visits(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each knob that is set beside several visits, and told of one alone."""
    for path in _OF_ONE_VISIT:
        usual = _DEFAULTS.get(path[-1], "")
        if any(value != usual for value in file.all_of(path, usual)):
            yield (
                f"{file.place(path)}: its times are those of one load, and there are several "
                "visits; leave one of them out"
            )


def check_clients(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each knob that a client of page loads cannot honour."""
    asked = {
        value if isinstance(value, str) else name: name
        for name, usual in _OF_CLIENTS.items()
        for value in file.all_of((name,), usual)
        if value not in (usual, "h1", "h2")
    }
    for client in file.all_of(("client",), None):
        for what, name in asked.items():
            if what not in file.honours.get(client, {what}):
                able = (each for each, honours in file.honours.items() if what in honours)
                yield (
                    f"{file.place((name,))}: the client {toml_text(client)} has no {what}; take "
                    f"client = {' or '.join(map(toml_text, able))}, or leave {name} out"
                )


def _leaves_out(file: ExperimentFile, met: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``leave_out`` takes out every condition with these two values."""
    words = {f"{name}={toml_text(value).strip(chr(34))}" for name, value in met.items()}
    entries = file.values.get("leave_out", ())
    return any(words >= {word.strip() for word in entry.split(",")} for entry in entries)


def _has(file: ExperimentFile, name: str, value: object) -> bool:
    return value in file.all_of((name,), _DEFAULTS[name])
