"""Mininet's prompt over the lab: its four hosts as Mininet nodes, for a script or a terminal.

    prompt.py TAG script FILE       performs the lines of FILE, and shows each before what it says
    prompt.py TAG terminal SOCKET   waits at a socket for whoever has the terminal

TAG begins the names of the lab's network namespaces.  Runs in the system's Python, where Debian's
``mininet`` is (version 2.3), inside of a guest or an enclosure.
"""

from __future__ import annotations

import os
import pty
import selectors
import socket
import sys
from pathlib import Path
from typing import Any

import mininet.net
from mininet.cli import CLI
from mininet.link import Intf
from mininet.node import Node

HOSTS = {
    "client": {"c0": "10.0.0.2"},
    "near": {"n0": "10.0.0.1", "n1": "10.0.1.1"},
    "far": {"f0": "10.0.1.2", "f1": "10.0.2.1"},
    "server": {"s0": "10.0.2.2"},
}
"""The hosts of the lab in a row, and their devices' addresses; the first is the host's own."""
PREFIX_BITS = 24
WAIT_S = 60.0
READ_BYTES = 65536


class LabHost(Node):  # type: ignore[misc]  # Mininet has no types
    """A host of the lab: a shell in a network namespace that is there already."""

    def __init__(self, name: str, namespace: str) -> None:
        self.namespace = namespace
        super().__init__(name)

    @classmethod
    def setup(cls) -> None:
        """Check nothing: what this needs is in Debian's package, and ``which`` is not there."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        """Start the shell inside; a namespace of its own is not made."""
        self.inNamespace = False
        super().startShell(mnopts)
        self.inNamespace = True

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        entered = ["ip", "netns", "exec", self.namespace] if self.shell is None else []
        return super()._popen([*entered, *cmd], **params)


class Prompt(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's prompt, which shows the lines of a script."""

    prompt = "lab> "

    def onecmd(self, line: str) -> Any:
        """Perform a line."""
        if self.inputFile and line.strip():
            print(f"{self.prompt}{line.strip()}", flush=True)
        return super().onecmd(line)


def open_network(tag: str) -> Any:
    """Return the lab's hosts as a Mininet network, which has built and configured nothing."""
    mininet.net.fixLimits = lambda: None  # it would rewrite the machine's sysctls
    network = mininet.net.Mininet(build=False, controller=None)
    for name, devices in HOSTS.items():
        host = LabHost(name, f"{tag}{name}")
        for device, address in devices.items():
            known = Intf(device, node=host, moveIntfFn=lambda *_: None, up=False)
            known.ip, known.prefixLen = address, PREFIX_BITS
        network.hosts.append(host)
        network.nameToNode[name] = host
    return network


def perform_script(network: Any, script: str) -> None:
    """Perform the lines of ``script``; nobody types."""
    silent, _open = os.pipe()  # to read from /dev/null would be to read for ever
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())  # in the order in which it is said
    Prompt(network, stdin=os.fdopen(silent), script=script)


def serve_terminal(tag: str, path: str) -> None:
    """Give the prompt a terminal, and join that with the first who comes to the socket ``path``."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        Path(path).chmod(0o600)
        door.listen(1)
        door.settimeout(WAIT_S)
        visitor, _ = door.accept()
    visitor.settimeout(None)
    child, terminal = pty.fork()
    if not child:
        visitor.close()
        Prompt(open_network(tag))
        sys.exit()
    with visitor, selectors.DefaultSelector() as ready:
        ready.register(visitor, selectors.EVENT_READ)
        ready.register(terminal, selectors.EVENT_READ)
        while relay(ready, visitor, terminal):
            pass
    os.close(terminal)  # whoever still runs there is hung up
    os.waitpid(child, 0)


def relay(ready: selectors.BaseSelector, visitor: socket.socket, terminal: int) -> bool:
    """Pass on what has come; return whether both ends are still there."""
    for key, _ in ready.select():
        try:
            data = os.read(key.fd, READ_BYTES)
            if not data:
                return False
            if key.fd == terminal:
                visitor.sendall(data)
            else:
                os.write(terminal, data)
        except OSError:  # a terminal that nobody has open any more is an error to read (EIO)
            return False
    return True


def main() -> None:
    """Do what the arguments say."""
    tag, how, path = sys.argv[1:]
    if how == "script":
        perform_script(open_network(tag), path)
    else:
        serve_terminal(tag, path)


if __name__ == "__main__":
    main()
