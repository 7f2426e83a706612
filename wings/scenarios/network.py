"""Network of a scenario: hosts in namespaces of their own, and one program that carries packets.

Each host has a TUN device, so that every packet that its kernel sends comes to this program at
once, as the kernel made it, and goes on half a round trip later.  No line, no queue, no other
traffic: what is on the wire is what TCP means to send.  Each host's packets are kept as tcpdump
would have captured them there.  Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import ctypes
import heapq
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.base.namespace import Namespace, new_namespace
from testbed.capture.counters import read_all_counters
from testbed.capture.packets import FAST_OPEN, SYN, find_option, read_frame
from testbed.lab.interfaces import add_address, mute, open_tun, set_route, set_up
from testbed.lab.rtnetlink import open_control
from testbed.lab.topology import ipv6_sysctls
from wings.scenarios.measurement import Arrival, Passage
from wings.scenarios.middlebox import Middlebox
from wings.scenarios.tls import TlsContext, TlsEnd
from wings.scenarios.words import ADDRESSES, ATTACKER, PREFIX, address_of, describe_end

DEVICE = "wire0"
DEFAULT_ROUTES = {"4": "default", "6": "::/0"}
FAST_OPEN_BOTH = {"net.ipv4.tcp_fastopen": "3"}
"""What each host begins with: Fast Open as client and as server, with cookies."""
_MAGIC = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
_RECORD = struct.Struct("<IIII")
_TYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}
_ROOM = 65_536
_TFD_TIMER_ABSTIME = 1


class PacketFile:
    """A capture being written: what one host sent and was delivered, in order (pcap-savefile(5)).

    Its Ethernet headers only say who sent a packet and who was given it.
    """

    def __init__(self, path: Path) -> None:
        """Begin the file at ``path``."""
        self._file = path.open("wb")
        self._file.write(_MAGIC)
        self.packets = 0

    def add(self, at_ns: int, frame: bytes) -> int:
        """Add a frame and return its number, from 0."""
        seconds, nanoseconds = divmod(at_ns, 1_000_000_000)
        self._file.write(_RECORD.pack(seconds, nanoseconds, len(frame), len(frame)) + frame)
        self.packets += 1
        return self.packets - 1

    def close(self) -> None:
        """End the file."""
        self._file.close()


class Alarm:
    """A descriptor that is readable from a moment on (timerfd_create(2)).

    The time-out of select(2) may be late by a thousandth of itself.
    """

    def __init__(self) -> None:
        """Make it; it does not go off yet."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._libc.timerfd_create(time.CLOCK_REALTIME, os.O_CLOEXEC)
        if self.descriptor < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"timerfd_create(2): {os.strerror(error)}")

    def set(self, at_ns: int) -> None:
        """Have it go off at ``at_ns`` of CLOCK_REALTIME, and no longer at what was set before."""
        seconds, nanoseconds = divmod(max(1, at_ns), 1_000_000_000)
        setting = struct.pack("@qqqq", 0, 0, seconds, nanoseconds)
        self._libc.timerfd_settime(self.descriptor, _TFD_TIMER_ABSTIME, setting, None)

    def close(self) -> None:
        """End it."""
        os.close(self.descriptor)


@dataclass(slots=True)
class Host:
    """A host: its namespace, its device's descriptor, its capture, and its sockets by name.

    ``ip`` says of which IP its address is; ``secured`` are the sockets with TLS.
    """

    name: str
    ip: str
    namespace: Namespace
    device: int
    capture: PacketFile
    counted: dict[str, int]
    sockets: dict[str, socket.socket] = field(default_factory=dict)
    secured: dict[str, TlsEnd] = field(default_factory=dict)
    tls: TlsContext | None = None


@dataclass(slots=True)
class Network:
    """The hosts and what is between them; time passes only in ``run``.

    ``passages`` are all packets that were sent, in order, ``granted`` the last cookie that each
    host was given, and ``late_ns`` is by how much a packet was delivered late at the worst.
    """

    hosts: dict[str, Host]
    alarm: Alarm
    attacks: PacketFile
    half_s: float
    middlebox: Middlebox = field(default_factory=Middlebox)
    passages: list[Passage] = field(default_factory=list)
    granted: dict[str, bytes] = field(default_factory=dict)
    late_ns: int = 0
    _under_way: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    _sent: int = 0

    def run(
        self,
        seconds: float,
        reading: Sequence[socket.socket] = (),
        writing: Sequence[socket.socket] = (),
    ) -> bool:
        """Carry packets for ``seconds``, or until a socket is ready; return whether one is."""
        devices = {host.device: host for host in self.hosts.values()}
        until_ns = time.time_ns() + round(seconds * 1e9)
        while True:
            self._deliver()
            if (reading or writing) and any(select.select(reading, writing, [], 0)):
                return True
            now_ns = time.time_ns()
            self.alarm.set(min([until_ns, *(due for due, *_ in self._under_way[:1])]))
            # At the end, too: what was sent until now is under way.
            wait_s = 0 if now_ns >= until_ns else None
            watched: list[int | socket.socket] = [*devices, self.alarm.descriptor, *reading]
            ready, _, _ = select.select(watched, writing, [], wait_s)
            for device, host in devices.items():
                if device in ready:
                    self._take(host)
            if now_ns >= until_ns:
                return False

    def attack(self, packet: bytes) -> None:
        """Send an IP packet that no host has sent."""
        at_ns = time.time_ns()
        frame = _frame(ATTACKER, packet)
        self._carry(ATTACKER, at_ns, self.attacks.add(at_ns, frame), frame)

    def _take(self, host: Host) -> None:
        """Take what ``host`` has sent, all of it."""
        while True:
            try:
                packet = os.read(host.device, _ROOM)
            except BlockingIOError:
                return
            at_ns = time.time_ns()
            frame = _frame(host.name, packet)
            self._carry(host.name, at_ns, host.capture.add(at_ns, frame), frame)

    def _carry(self, sender: str, at_ns: int, number: int, frame: bytes) -> None:
        packet = read_frame(at_ns, frame, len(frame))
        place = len(self.passages)
        self.passages.append(Passage(sender, number, at_ns))
        for later_s, data in self.middlebox.pass_on(packet, sender):
            due_ns = at_ns + round((self.half_s + later_s) * 1e9)
            self._sent += 1
            heapq.heappush(self._under_way, (due_ns, self._sent, place, data))

    def _deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= time.time_ns():
            due_ns, _, place, data = heapq.heappop(self._under_way)
            packet = read_frame(0, _frame("", data), len(data) + 14)
            host = self.hosts.get(self._receiver(packet.target, data))
            if host is None:
                continue
            cookie = find_option(packet, FAST_OPEN) if packet.flags & SYN else None
            if cookie:
                self.granted[host.name] = cookie
            at_ns = time.time_ns()
            self.late_ns = max(self.late_ns, at_ns - due_ns)
            number = host.capture.add(at_ns, _frame("", data))
            self.passages[place].arrivals.append(Arrival(host.name, number, at_ns))
            os.write(host.device, data)

    def _receiver(self, target: bytes, data: bytes) -> str:
        if not target:
            return ""  # what a host says of itself, such as its groups
        name = describe_end(target)
        if name == "farm" and self.middlebox.servers:
            return self.middlebox.server_of(read_frame(0, _frame("", data), len(data) + 14))
        if name == "prefix":
            return "server"
        return name if name in ADDRESSES else ""


def _frame(sender: str, packet: bytes) -> bytes:
    """Return ``packet`` behind an Ethernet header; the last digits are those of the sender."""
    number = (*ADDRESSES, ATTACKER).index(sender) + 1 if sender else 0
    return bytes((2, 0, 0, 0, 0, 0xFE, 2, 0, 0, 0, 0, number)) + _TYPES[packet[0] >> 4] + packet


@contextmanager
def open_network(
    hosts: Sequence[str], rtt_ms: float, tag: str, folder: Path, ip: str = "4"
) -> Iterator[Network]:
    """Build the hosts with ``ip``, and keep what each sends and gets in ``folder`` as HOST.pcap.

    The undo removes the namespaces that were made here, and what is in them.

    Raises:
        MissingError: the kernel has no IPv6, and ``ip`` asks for it.
    """
    sysctls = ipv6_sysctls(ip, "ip")
    with ExitStack() as undo:
        alarm = Alarm()
        undo.callback(alarm.close)
        made = {}
        for name in hosts:
            namespace = undo.enter_context(new_namespace(f"{tag}{name}"))
            namespace.write_sysctls(sysctls | FAST_OPEN_BOTH)
            with namespace.entered():
                device = open_tun(DEVICE)
                undo.callback(os.close, device)
                with open_control() as control:
                    _address(control, name, ip)
            capture = PacketFile(folder / f"{name}.pcap")
            undo.callback(capture.close)
            made[name] = Host(name, ip, namespace, device, capture, read_all_counters(namespace))
        attacks = PacketFile(folder / f"{ATTACKER}.pcap")
        undo.callback(attacks.close)
        network = Network(made, alarm, attacks, rtt_ms / 2000, Middlebox(ip))
        try:
            yield network
        finally:
            for host in made.values():
                for opened in host.sockets.values():
                    opened.close()


def _address(control: socket.socket, name: str, ip: str) -> None:
    mine, length = address_of(name, ip), 128 if ip == "6" else 32
    if ip == "6":
        mute(control, DEVICE)
    add_address(control, DEVICE, f"{mine}/{length}")
    if name == "server" and ip == "4":
        # Of the loopback device all addresses of a prefix are its host's own.
        add_address(control, "lo", f"{PREFIX[1]}/{PREFIX.prefixlen}")
    if name.startswith("server"):
        add_address(control, DEVICE, f"{address_of('farm', ip)}/{length}")
    set_up(control, "lo")
    set_up(control, DEVICE)
    set_route(control, DEFAULT_ROUTES[ip], mine, device=DEVICE)
