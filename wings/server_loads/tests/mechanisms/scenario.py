"""A small overload in two namespaces, which any kernel can be put through: who said what, and how
it ended.

It imports nothing of the tests, so that it runs in a guest as well.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from testbed.base import proc
from testbed.base.namespace import Namespace
from testbed.capture.counters import parse_counters
from testbed.capture.packets import ACK, FIN, PSH, RST, SYN, Packet, read_capture
from testbed.capture.tcpdump import capture
from testbed.lab.offloads import clear_offloads
from wings.server_loads.mechanisms.apply import apply_management
from wings.server_loads.spec import Mechanism, ServerSpec

CLIENT, SERVER, RAW = "10.99.0.1", "10.99.0.2", "10.99.0.3"
CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
PORT = 8080
# Ports of clients: those that fill the accept queue, one more, one whose last connection waits at
# the server for its end (TIME-WAIT), crafted ones, and those that end.
FILLING, MORE, AGAIN, CRAFTED, ENDING, HALF, WITH_DATA = 2001, 3001, 3002, 4001, 5001, 5002, 5003
CRAFTED_COUNT = 5
PUBLISHED = ServerSpec(syn_backlog=1024, listen_backlog=128, admission="linux-2.4")
"""Linux 2.4.22 (section V); SYN cookies were off unless the kernel was built with them."""
FLOOD = range(10_000, 13_000)
SO_RCVBUFFORCE = 33  # socket(7); Python 3.11 has no name for it
ROOM_BYTES = 8 << 20
PATIENCE_S = 1.5  # the first SYN is sent again after 1 s
QUIET_S = 0.2
READ_S = 2.0
LETTERS = ((SYN, "S"), (FIN, "F"), (RST, "R"), (ACK, "A"))
WORDS = (
    *("TcpOutRsts", "TcpEstabResets", "TcpAttemptFails", "TcpExtListenOverflows"),
    *("TcpExtListenDrops", "TcpExtEmbryonicRsts", "TcpExtSyncookiesSent", "TcpExtSyncookiesRecv"),
)
UNDONE = (
    *("net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_syncookies"),
    *("net.ipv4.tcp_abort_on_overflow", "net.ipv4.tcp_overload", "net.ipv4.tcp_accept_limit"),
)


@contextmanager
def wired(tag: str) -> Iterator[tuple[Namespace, Namespace]]:
    """Client and server with a wire between ``c0`` and ``s0``; neither asks who is where."""
    client, server = Namespace(f"{tag}c"), Namespace(f"{tag}s")
    with ExitStack() as undo:
        for made in (client, server):
            proc.run(("ip", "netns", "add", made.name))
            undo.callback(proc.run, ("ip", "netns", "delete", made.name), check=False)
            if Path("/proc/sys/net/ipv6").exists():
                made.write_sysctls({"net.ipv6.conf.default.disable_ipv6": "1"})
        peer = ("type", "veth", "peer", "name", "s0", "address", SERVER_MAC, "netns", server.name)
        proc.run(("ip", "-n", client.name, "link", "add", "c0", "address", CLIENT_MAC, *peer))
        for end, device, address, known in (
            (client, "c0", CLIENT, {SERVER: SERVER_MAC}),
            (server, "s0", SERVER, {CLIENT: CLIENT_MAC, RAW: CLIENT_MAC}),
        ):
            ip = ("ip", "-n", end.name)
            proc.run((*ip, "address", "add", f"{address}/24", "dev", device))
            proc.run((*ip, "link", "set", device, "up"))
            for peer_address, mac in known.items():
                words = (peer_address, "lladdr", mac, "dev", device, "nud", "permanent")
                proc.run((*ip, "neighbour", "add", *words))
            # Whole packets with whole checksums are on the wire.
            clear_offloads(end, device)
            proc.run((*end.prefix, "ethtool", "-K", device, "tx", "off"))
        yield client, server


def outcome(act: Callable[[], object]) -> str:
    """What a socket call came to: ``ok``, what it read, or the error's name."""
    try:
        done = act()
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return done.decode() if isinstance(done, bytes) else "ok"


class Crafted:
    """A client of crafted segments, which answers when it is asked to and never by itself."""

    def __init__(self, namespace: Namespace) -> None:
        with namespace.entered():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.bind(("c0", 0x0800))
        # Room for the answers to a flood, beyond what the machine lets anybody have.
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)

    def send(self, port: int, flags: int, seq: int, ack: int = 0) -> None:
        """Send a segment of nothing but a header."""
        ends = socket.inet_aton(RAW) + socket.inet_aton(SERVER)
        tcp = struct.pack("!HHIIBBHHH", port, PORT, seq, ack, 5 << 4, flags, 65535, 0, 0)
        tcp = tcp[:16] + checksum(ends + struct.pack("!HH", 6, len(tcp)) + tcp) + tcp[18:]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + ends
        ip = ip[:10] + checksum(ip) + ip[12:]
        macs = bytes.fromhex((SERVER_MAC + CLIENT_MAC).replace(":", ""))
        self.socket.send(macs + b"\x08\x00" + ip + tcp)

    def read(self) -> dict[int, tuple[int, int]]:
        """What came meanwhile: the last segment's flags and sequence number, by port."""
        last_segments: dict[int, tuple[int, int]] = {}
        self.socket.settimeout(QUIET_S)
        while True:
            try:
                frame = self.socket.recv(2048)
            except TimeoutError:
                return last_segments
            if frame[30:34] == socket.inet_aton(RAW):
                _, port, seq, _, _, flags = struct.unpack_from("!HHIIBB", frame, 34)
                last_segments[port] = flags, seq


def checksum(data: bytes) -> bytes:
    """The Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


def has_checksums(packet: Packet) -> bool:
    ip, tcp = packet.frame[14:34], packet.frame[34 : 14 + packet.ip_bytes]
    pseudo = ip[12:20] + struct.pack("!HH", 6, len(tcp))
    return checksum(ip) == checksum(pseudo + tcp) == b"\0\0"


class Overload:
    """One run: a server's and a client's namespace with the mechanisms at work."""

    def __init__(self, client: Namespace, server: Namespace, backlog: int) -> None:
        self.client, self.server, self.backlog = client, server, backlog
        self.outcomes: dict[str, str] = {}
        self.counters: dict[str, dict[str, int]] = {}

    def listen(self) -> socket.socket:
        with self.server.entered():
            listener = socket.create_server((SERVER, PORT), backlog=self.backlog)
        listener.settimeout(PATIENCE_S)
        return listener

    def connect(self, port: int) -> tuple[socket.socket, str]:
        """A client's socket and what its connect(2) came to."""
        with self.client.entered():
            made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((CLIENT, port))
        made.settimeout(PATIENCE_S)
        return made, outcome(lambda: made.connect((SERVER, PORT)))

    @contextmanager
    def counted(self, phase: str) -> Iterator[None]:
        """Leave in ``counters`` what the server's counted during the block."""
        before = self.read_counters()
        yield
        after = self.read_counters()
        self.counters[phase] = {name: after[name] - before[name] for name in WORDS}

    def read_counters(self) -> dict[str, int]:
        with self.server.entered():
            texts = [
                Path(f"/proc/thread-self/net/{name}").read_text() for name in ("snmp", "netstat")
            ]
        counters = parse_counters("".join(texts))
        return {name: counters[name] for name in WORDS}

    def overflow_by_syn(self, room: int) -> None:
        """The accept queue is full, and two more clients come."""
        with self.listen() as listener, ExitStack() as undo, self.counted("syn"):
            again, _ = self.connect(AGAIN)
            listener.accept()[0].close()
            again.close()
            time.sleep(QUIET_S)  # the next connection's numbers have to be later
            for i in range(room):
                filling, result = self.connect(FILLING + i)
                undo.enter_context(filling)
                self.outcomes[f"filling {i}"] = result
            for name, port in (("more", MORE), ("again", AGAIN)):
                client, self.outcomes[name] = self.connect(port)
                with client:
                    # The reset of its ACK may come before connect(2) has returned, or after.
                    if self.outcomes[name] == "ok":
                        self.outcomes[name] = outcome(partial(client.recv, 1))

    def overflow_by_ack(self) -> None:
        """Handshakes open while there is room for all, and are completed when there is none."""
        crafted = Crafted(self.client)
        with self.listen(), crafted.socket, self.counted("ack"):
            ports = range(CRAFTED, CRAFTED + CRAFTED_COUNT)
            for port in ports:
                crafted.send(port, SYN, 1000)
            answered = {port: seq for port, (flags, seq) in crafted.read().items()
                        if flags & SYN}  # fmt: skip
            for port, seq in answered.items():
                crafted.send(port, ACK, 1001, seq + 1)
            crafted.read()

    def end(self) -> None:
        """Clients end what they began: by close(2), by shutdown(2), and by a FIN with data."""
        with self.listen() as listener, self.counted("fin"):
            closing, _ = self.connect(ENDING)
            accepted, _ = listener.accept()
            with accepted:
                accepted.settimeout(PATIENCE_S)
                closing.send(b"x")
                accepted.recv(1)
                closing.close()
                self.outcomes["closed"] = outcome(lambda: accepted.recv(1))
            half, _ = self.connect(HALF)
            accepted, _ = listener.accept()
            with half, accepted:
                half.shutdown(socket.SHUT_WR)
                half.settimeout(QUIET_S)
                self.outcomes["half-closed"] = outcome(lambda: half.recv(1))
            last, _ = self.connect(WITH_DATA)
            accepted, _ = listener.accept()
            with accepted:
                accepted.settimeout(PATIENCE_S)
                last.send(b"last", socket.MSG_MORE)
                last.close()
                self.outcomes["with data"] = outcome(lambda: accepted.recv(9))


def conversations(packets: tuple[Packet, ...]) -> dict[str, list[str]]:
    """By client's port, who sent which flags (a dot: and data); repeated ones are there once.

    Of a port that was used again it is the last time.
    """
    by_port: dict[str, list[str]] = {}
    for packet in packets:
        if packet.protocol != "TCP":
            continue
        ours = packet.target_port == PORT
        flags = "".join(letter for bit, letter in LETTERS if packet.flags & ~PSH & bit)
        segment = f"{'client' if ours else 'server'} {flags}{'.' if packet.payload_bytes else ''}"
        segments = by_port.setdefault(str(packet.source_port if ours else packet.target_port), [])
        if packet.opens and segments[-1:] != [segment]:
            segments.clear()
        if segments[-1:] != [segment]:
            segments.append(segment)
    return by_port


def state_of(server: Namespace) -> dict[str, str]:
    """Sysctls and disciplines that the mechanisms may touch."""
    state = {"qdisc": proc.run(("tc", "-n", server.name, "qdisc", "show", "dev", "s0")).stdout}
    for name in UNDONE:
        try:
            state[name] = server.read_sysctl(name)
        except FileNotFoundError:
            continue
    return state


def observe(
    tag: str,
    words: Mechanism,
    queues: dict[str, Any],
    folder: Path,
    object_file: Path | None = None,
) -> dict[str, Any]:
    """Put the mechanisms ``words`` through all of it, and tell."""
    asked, pcap = ServerSpec(mechanism=words, **queues), folder / f"{words.replace(' ', '-')}.pcap"
    with wired(tag) as (client, server):
        before = state_of(server)
        with apply_management(server, "s0", PORT, asked, object_file) as applied:
            run = Overload(client, server, applied.backlog)
            with capture(client, "c0", pcap, folder / "tcpdump.log"):
                run.overflow_by_syn(asked.listen_backlog + 1)
                run.overflow_by_ack()
                run.end()
                time.sleep(READ_S)  # the capture has to have read it all
            counted = applied.read_counters()
        after = state_of(server)
    packets = read_capture(pcap).packets
    return {"conversations": conversations(packets), "outcomes": run.outcomes,
            "counters": run.counters, "program": counted,
            "wrong_checksums": sum(not has_checksums(p) for p in packets if p.protocol == "TCP"),
            "undone": before == after}  # fmt: skip


def flood(tag: str, words: Mechanism, object_file: Path | None = None) -> dict[str, int]:
    """Open ``FLOOD`` handshakes at once and complete all that are answered; who got what.

    Nobody accepts; the queues are those of the source.
    """
    with (
        wired(tag) as (client, server),
        apply_management(
            server, "s0", PORT, replace(PUBLISHED, mechanism=words), object_file
        ) as applied,
        Overload(client, server, applied.backlog).listen(),
    ):
        crafted = Crafted(client)
        with crafted.socket:
            for port in FLOOD:
                crafted.send(port, SYN, 1000)
            first = crafted.read()
            for port, (flags, seq) in first.items():
                if flags & SYN:
                    crafted.send(port, ACK, 1001, seq + 1)
            then = crafted.read()
    return {"answered": sum(flags == SYN | ACK for flags, _ in first.values()),
            "refused": sum(flags == RST | ACK for flags, _ in first.values()),
            "reset": sum(flags == RST for flags, _ in then.values())}  # fmt: skip
