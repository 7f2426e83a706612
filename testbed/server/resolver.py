"""Name server of the lab (dnsmasq(8)) or, on request, a hosts file (resolv.conf(5)).

``ip netns exec`` and native/start.c bind the files in /etc/netns/NAME over those in /etc, so what
is written here is seen inside the client's namespace only.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace

ETC_NETNS = Path("/etc/netns")
TTL_S = 3600
LOCALHOST = "127.0.0.1 localhost\n"


Addresses = Mapping[str, tuple[str, ...]]
"""Those of each host, of IPv4, IPv6 or both."""


def resolver_argv(addresses: Addresses, listen: str, pid_file: Path) -> tuple[str, ...]:
    """Return the command of an authoritative dnsmasq that knows ``addresses`` and nothing else."""
    records = [f"--host-record={host},{','.join(of)},{TTL_S}" for host, of in addresses.items()]
    return (
        *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"),
        *("--no-daemon", "--no-poll", "--local=/#/", "--user=root", "--bind-interfaces"),
        *("--listen-address=" + listen, f"--pid-file={pid_file}", *records),
    )


@contextmanager
def name_files(client: Namespace, listen: str) -> Iterator[None]:
    """Give programs in ``client`` files of their own, by which they ask ``listen`` for names."""
    folder = ETC_NETNS / client.name
    folder.mkdir(parents=True)
    try:
        (folder / "hosts").write_text(LOCALHOST)
        (folder / "resolv.conf").write_text(f"nameserver {listen}\noptions timeout:30\n")
        yield
    finally:
        shutil.rmtree(folder)


@contextmanager
def resolve(
    client: Namespace,
    server: Namespace,
    addresses: Addresses,
    listen: str,
    mode: str,
    scratch: Path,
    others: bool = False,
) -> Iterator[None]:
    """Make every host of ``addresses`` resolvable for the client.

    Args:
        client: the namespace whose programs will resolve names; it has ``name_files``.
        server: the namespace in which the name server runs, behind the link.
        addresses: those of each host name.
        listen: address of the name server.
        mode: ``resolver`` (names cost round trips on the link) or ``hosts`` (they are free).
        scratch: a writable directory.
        others: whether it is asked for names of nobody, of which a hosts file cannot tell.
    """
    with ExitStack() as undo:
        if mode == "hosts":
            # In place: a program that has started already has this very file over its /etc/hosts.
            with (ETC_NETNS / client.name / "hosts").open("a") as hosts:
                hosts.writelines(
                    f"{address} {host}\n" for host, of in addresses.items() for address in of
                )
        if others or mode != "hosts":
            log = undo.enter_context((scratch / "dnsmasq.log").open("wb"))
            argv = resolver_argv(addresses, listen, scratch / "dnsmasq.pid")
            with server.entered():
                child = undo.enter_context(proc.started(argv, stdout=log, stderr=log))
            if not proc.becomes_ready(child, lambda: _listening(server, listen)):
                said = (scratch / "dnsmasq.log").read_text(errors="replace")
                raise LabError(f"the name server is not ready: {said}")
        yield


def _listening(server: Namespace, listen: str) -> bool:
    sockets = Path("/proc/thread-self/net") / ("udp6" if ":" in listen else "udp")
    with server.entered():
        return b":0035 " in sockets.read_bytes()
