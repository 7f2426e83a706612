"""Rules of clients in experiment files: what they cannot honour, and tickets that end too soon.

What is swept meets everything else that is swept, so one value on each side is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from testbed.kinds.experiment_file import ExperimentFile, toml_text
from testbed.model import Condition

TICKET_LIFE_S = 604_800.0
"""The longest that tickets may live (RFC 8446 section 4.6.1)."""
_AIOQUIC = "aioquic"
_LIFE_OF_AIOQUIC_S = 86_400.0  # aioquic/tls.py; none can be asked of it

_DEFAULTS = {each.name: each.default for each in fields(Condition)}
_KNOBS_OF_CLIENTS = ("visits", "tls_resumption", "early_data", "key_share", "protocol",
                     "preconnect_pct", "device", "block", "film")  # fmt: skip
_OF_CLIENTS = {name: _DEFAULTS[name] for name in _KNOBS_OF_CLIENTS}


def check_ticket_life(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for tickets that end before a later visit."""
    many = any(number > 1 for number in file.all_of(("visits",), 1))
    if many and _has(file, "tls_resumption", True):
        longest = max(file.all_of(("idle_s",), _DEFAULTS["idle_s"]))
        life = _LIFE_OF_AIOQUIC_S if _has(file, "web_server", _AIOQUIC) else TICKET_LIFE_S
        if longest > life:
            yield (
                f"{file.place(('idle_s',))}: {longest:g} s are beyond a ticket's life of "
                f"{life:g} s; take less, or leave tls_resumption out"
            )


def check_clients(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each knob that a client of page loads cannot honour."""
    by_name = frozenset[str]().union(*file.honours.values())
    asked = {
        value if isinstance(value, str) and name not in by_name else name: name
        for name, usual in _OF_CLIENTS.items()
        for value in file.all_of((name,), usual)
        if value not in (usual, "h1", "h2", "off")
    }
    for client in file.all_of(("client",), None):
        for what, name in asked.items():
            if what not in file.honours.get(client, {what}):
                able = (each for each, honours in file.honours.items() if what in honours)
                yield (
                    f"{file.place((name,))}: the client {toml_text(client)} has no {what}; take "
                    f"client = {' or '.join(map(toml_text, able))}, or leave {name} out"
                )


def _has(file: ExperimentFile, name: str, value: object) -> bool:
    return value in file.all_of((name,), _DEFAULTS[name])
