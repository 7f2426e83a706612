"""Registry of the clients that load a page; a client's module is imported when it is first used.

To add one: its module, and a line in ``_FACTORIES``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

TYPE_CHECKING = False  # not from typing, whose import costs every start of a client
if TYPE_CHECKING:
    from testbed.client.interface import Client

_FACTORIES = {
    "chromium": ("testbed.client.chromium", "Chromium"),
    "wget2": ("testbed.client.wget2", "Wget2"),
    "graph": ("testbed.client.graph", "Graph"),
    "command": ("testbed.client.command", "Command"),
}


class _Registry(Mapping[str, "Client"]):
    def __getitem__(self, name: str) -> Client:
        module, factory = _FACTORIES[name]
        client: Client = getattr(import_module(module), factory)()
        return client

    def __iter__(self) -> Iterator[str]:
        return iter(_FACTORIES)

    def __len__(self) -> int:
        return len(_FACTORIES)


CLIENTS: Mapping[str, Client] = _Registry()


def tcp_alone(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the clients ``names`` that show TCP alone, each once and in order."""
    wanted = set(names)
    return tuple(name for name in CLIENTS if name in wanted and CLIENTS[name].tcp_alone)
