"""Words of a scenario's script: hosts, their calls, the middlebox's rules, and sizes and times.

Standard library only: a guest performs scripts, the host checks them and judges what came of them.
Addresses are those kept for documentation (RFC 5737, RFC 3849).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import cycle, islice

from testbed.base.addresses import format_address, pack_address

ADDRESSES = {
    "client": "192.0.2.1",
    "client2": "192.0.2.2",
    "server": "198.51.100.1",
    "server2": "198.51.100.2",
}
"""The hosts that a scenario may have, and their addresses."""
FARM_ADDRESS = "198.51.100.100"
"""The address that the servers of a farm share."""
NAT_ADDRESS = "203.0.113.1"
"""What clients behind a NAT have outside."""
TARGETS = ADDRESSES | {"farm": FARM_ADDRESS}
"""Whom a call may name."""
PREFIX = ip_network("198.18.0.0/15")
"""All of its addresses are the server's (RFC 2544 keeps them for tests)."""
PEERS = TARGETS | {"nat": NAT_ADDRESS, "prefix": str(PREFIX.network_address)}
"""Whom a packet may be of or for; ``farm``, ``nat`` and ``prefix`` are no hosts."""
_IPV6 = {
    "client": "2001:db8:1::1", "client2": "2001:db8:1::2", "server": "2001:db8:2::1",
    "server2": "2001:db8:2::2", "farm": "2001:db8:2::100", "nat": "2001:db8:3::1",
}  # fmt: skip
MIDDLEBOX, ATTACKER, WAIT = "middlebox", "attacker", "wait"
ACTORS = (*ADDRESSES, MIDDLEBOX, ATTACKER, WAIT)
OPTION_KINDS = {
    "mss": 2, "scale": 3, "sack": 4, "timestamps": 8, "md5": 19, "fastopen": 34,
    "experimental": 254,
}  # fmt: skip
"""The TCP options that a script names, by their kinds (IANA, TCP Parameters)."""
FLAG_BITS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, ".": 0x10}
"""The flags of a segment as tcpdump(8) prints them."""
COPIED = "copied"
"""The payload that the middlebox has copied, as data to send."""
EARLY_MODES = ("on", "off", "once")
_ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BYTES = re.compile(r"(\d{1,6})B")
_TEXT = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_SHOWN_BYTES = 60


def address_of(name: str, ip: str) -> str:
    """Return the address of one of ``PEERS`` over IPv4 or IPv6 (``ip`` is 4 or 6)."""
    return _IPV6[name] if ip == "6" else PEERS[name]


_NAMES = {
    pack_address(address_of(name, ip)): name
    for ip, own in (("4", PEERS), ("6", _IPV6))
    for name in own
}


def describe_end(address: bytes) -> str:
    """Return whose ``address`` it is: a host's name, another of ``PEERS``, or the address."""
    if len(address) == 4 and address[:1] == b"\xc6" and address[1] & 0xFE == 18:
        return "prefix"
    return _NAMES.get(address) or format_address(address)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of a script: how it is used, and what it does.

    ``usage`` has capital words for what is filled in, ``[...]`` around what may be left out.
    ``result`` says whether a result may be expected of it (``-> RESULT``).
    """

    usage: str
    help: str
    result: bool = False

    @property
    def words(self) -> tuple[int, int]:
        """The fewest and the most words without ``=`` that it takes."""
        plain = [word for word in self.usage.split() if "=" not in word]
        needed = sum(not word.startswith("[") for word in plain)
        return needed, 99 if any("..." in word for word in plain) else len(plain)

    @property
    def options(self) -> frozenset[str]:
        """The names of the options that it takes as ``name=value``."""
        named = (word.strip("[]").partition("=") for word in self.usage.split())
        return frozenset(name for name, equals, _ in named if equals)


CALLS = {
    "listen": Verb("SOCKET [port=80] [backlog=128] [fastopen=QUEUE]",
        "listen(2); with fastopen=, at most QUEUE connections that wait for their handshake's "
        "end (TCP_FASTOPEN)."),
    "accept": Verb("LISTENER SOCKET [within=10s]",
        "accept(2), as soon as there is a connection.", result=True),
    "connect": Verb("SOCKET HOST [fastopen] [nowait] [port=80] [within=10s]",
        "connect(2); with fastopen the SYN waits for the first data (TCP_FASTOPEN_CONNECT).",
        result=True),
    "sendto": Verb("SOCKET HOST DATA [nowait] [port=80] [within=10s]",
        "sendto(2) with MSG_FASTOPEN: connect, and send at once.", result=True),
    "hello": Verb("SOCKET [early=DATA]",
        "Begin TLS 1.3 as client, with the last ticket and, if that allows it, early data. The "
        "result is how many bytes of them were sent.", result=True),
    "tls": Verb("SOCKET [within=10s]",
        "Go on, or begin as server, until this side may send: full, resumed, or of early data "
        "accepted or refused.", result=True),
    "early": Verb("MODE",
        "How its TLS takes early data from now on: on, off, or once (once for each ticket)."),
    "visit": Verb("COUNT [from=0] [port=80]",
        "sendto with MSG_FASTOPEN to COUNT addresses of the prefix, from this one on, then a RST; "
        "the result is how many SYNs' data were taken.", result=True),
    "flush": Verb("", "Forget all servers' cookies (ip-tcp_metrics(8))."),
    "send": Verb("SOCKET DATA", "send(2); copied is what the middlebox has copied.", result=True),
    "recv": Verb("SOCKET [SIZE] [within=10s]",
        "recv(2), as soon as there is anything; with SIZE, until so much has come. The result is "
        "the data, eof, nothing, or an error.", result=True),
    "shutdown": Verb("SOCKET", "shutdown(2) of the sending half.", result=True),
    "close": Verb("SOCKET", "close(2)."),
    "abort": Verb("SOCKET", "close(2) with a RST (SO_LINGER 0)."),
    "set": Verb("SOCKET OPTION=VALUE",
        "setsockopt(2): fastopen_no_cookie=1, md5=KEY, mss=BYTES.", result=True),
    "info": Verb("SOCKET FIELD",
        "A field of TCP_INFO: syn_data (the peer took the SYN's data), cwnd, mss, "
        "retransmissions.", result=True),
    "count": Verb("COUNTER", "By how much a counter of nstat(8) grew, such as TcpExtTCPTimeouts.",
        result=True),
    "sysctl": Verb("NAME=VALUE", "A sysctl below net.ipv4 of this host.", result=True),
    "key": Verb("KEY [KEY]", "The Fast Open key, and a backup key (32 hexadecimal digits each)."),
    "window": Verb("SEGMENTS", "The initial congestion window of its connections from now on."),
}  # fmt: skip
"""What a host can do."""
RULES = {
    "drop": Verb(
        "FROM > TO [FLAGS] [data] [option=NAME] [over=BYTES] [times=N]",
        "Lose what matches; data: with payload; over=: longer than the path takes, by IP.",
    ),
    "unreachable": Verb(
        "FROM > TO [FLAGS] [data] [times=N]",
        "Lose what matches, and tell its sender by ICMP that the host cannot be reached.",
    ),
    "strip": Verb("OPTION FROM > TO [FLAGS] [times=N]", "Take a TCP option out."),
    "cookie": Verb("HEX FROM > TO [FLAGS] [times=N]", "Put another cookie into the option."),
    "repeat": Verb(
        "FROM > TO [FLAGS] [data] [times=N] [after=10ms]",
        "Deliver twice, the second time so much later.",
    ),
    "copy": Verb("FROM > TO [FLAGS] [data] [times=N]", "Copy the payload, for send."),
    "delay": Verb("FROM > TO [FLAGS] [data] [times=N] by=TIME", "Deliver so much later."),
    "nat": Verb(
        "HOST... [address=ADDRESS]",
        "Translate the addresses of these clients to one, with a mapping for each connection.",
    ),
    "forget": Verb("[nat]", "Lose the NAT's mappings: what comes by them is dropped."),
    "farm": Verb("HOST...", "Spread new connections to the farm's address over these servers."),
    "clear": Verb("", "Take all rules back but NAT and farm."),
}
"""What the middlebox can do, from then on; the last rule that matches counts first."""
ATTACKS = {
    "send": Verb("FROM > TO FLAGS [DATA] [port=PORT] [times=N] [cookie=HEX|HOST]",
        "Send segments with a forged sender; cookie=HOST is the one that HOST was given last. "
        "Each has the next source port."),
}  # fmt: skip
"""What somebody without a TCP of his own can do."""
VERBS: dict[str, dict[str, Verb]] = {
    **dict.fromkeys(ADDRESSES, CALLS), MIDDLEBOX: RULES, ATTACKER: ATTACKS,
}  # fmt: skip
"""The verbs of each actor."""


def parse_time(word: str) -> float | None:
    """Return seconds of ``250ms``, ``3s`` or ``10us``; ``None`` if it is no time."""
    match = _TIME.fullmatch(word)
    return float(match[1]) * _UNITS_S[match[2]] if match else None


def parse_size(word: str) -> int | None:
    """Return the number of ``1000B``; ``None`` if it is no size."""
    match = _BYTES.fullmatch(word)
    return int(match[1]) if match else None


def parse_data(word: str) -> bytes | None:
    """Return the bytes of ``"text"`` or of ``1000B`` (the alphabet, over and over)."""
    text, size = _TEXT.fullmatch(word), parse_size(word)
    if text is not None:
        return text[1].replace('\\"', '"').replace("\\\\", "\\").encode()
    return None if size is None else bytes(islice(cycle(_ALPHABET), size))


def describe_data(data: bytes) -> str:
    """Return ``data`` as a script has it: short text as text, else its size."""
    printable = 0 < len(data) <= _SHOWN_BYTES and all(32 <= byte < 127 for byte in data)
    if printable and data != parse_data(f"{len(data)}B"):
        return '"' + data.decode().replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{len(data)}B"


def parse_flags(word: str) -> int | None:
    """Return the flags of ``[S.]`` as bits; ``None`` if it has no such form."""
    inner = word[1:-1]
    if word[:1] + word[-1:] != "[]" or not inner or not set(inner) <= FLAG_BITS.keys():
        return None
    return sum(FLAG_BITS[letter] for letter in set(inner))


def describe_flags(flags: int) -> str:
    """Return ``flags`` as tcpdump(8) prints them."""
    return f"[{''.join(letter for letter in 'SFRP.' if flags & FLAG_BITS[letter])}]"
