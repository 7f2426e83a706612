"""Calls of a scenario's hosts: each of a script's verbs, as the system call that it names.

Sockets never block: while a call waits, the network goes on (``Network.run``).  Results are as
scripts have them: ``ok``, a number, data, ``eof``, ``nothing``, or the name of an error.
Standard library only: this is what a guest executes.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from socket import inet_aton

from testbed.base.errors import MissingError
from testbed.capture.counters import read_all_counters
from testbed.lab.interfaces import set_route
from testbed.lab.routes import encode_metrics
from testbed.lab.rtnetlink import attributes, dump, number_of, open_control, order, text_of
from wings.scenarios.attacks import attack
from wings.scenarios.network import DEFAULT_ROUTES, DEVICE, Host, Network
from wings.scenarios.script import Action
from wings.scenarios.tls import TlsContext, TlsEnd
from wings.scenarios.words import (
    ATTACKER,
    COPIED,
    MIDDLEBOX,
    PREFIX,
    TARGETS,
    WAIT,
    address_of,
    describe_data,
    parse_data,
    parse_size,
    parse_time,
)

OK, EOF, NOTHING = "ok", "eof", "nothing"
_PATIENCE = "10s"
_ROOM = 65_536
# linux/tcp.h; what Python's socket module lacks.
_MD5SIG, _FASTOPEN_CONNECT, _FASTOPEN_NO_COOKIE = 14, 30, 34
_OPTIONS = {"fastopen_no_cookie": _FASTOPEN_NO_COOKIE, "mss": socket.TCP_MAXSEG}
_MD5_KEY = struct.Struct("@HH4s120xBBHi80s")
# struct tcp_info: its length, and where a field is, as bytes and a mask or an unsigned number.
_INFO_BYTES = 104
_SYN_DATA, _OPTIONS_BYTE = 0x20, 5
_NUMBERS = {"mss": 16, "cwnd": 80, "retransmissions": 100}
_VISIT, _AT_ONCE = "visit", 200
# linux/netlink.h, linux/genetlink.h and linux/tcp_metrics.h.
_NETLINK_GENERIC, _GENERIC = 16, struct.Struct("=BBH")
_GET_FAMILIES = 16, _GENERIC.pack(3, 1, 0)
_FAMILY_ID, _FAMILY_NAME, _METRICS_DELETE = 1, 2, 2
_LACKING = (errno.ENOPROTOOPT, errno.ENOENT, errno.EAFNOSUPPORT)


def perform_call(network: Network, action: Action) -> str:
    """Perform one line of a script and return its result.

    Raises:
        MissingError: this kernel lacks what the line needs.
    """
    if action.actor == WAIT:
        network.run(parse_time(action.words[0]) or 0.0)
        return OK
    if action.actor == MIDDLEBOX:
        network.middlebox.obey(action.verb, action.words, action.options)
        return OK
    if action.actor == ATTACKER:
        return attack(network, action)
    host = network.hosts[action.actor]
    try:
        return _CALLS[action.verb](network, host, action) or OK
    except OSError as error:
        name = _name_of(error.errno or errno.EIO)
        if error.errno in _LACKING and action.expected != name:
            raise MissingError(
                f"line {action.line}: {action.text}: this kernel lacks it ({name}); "
                "use one that has it"
            ) from error
        return name


def _listen(network: Network, host: Host, action: Action) -> None:
    made = _socket_of(host, action.words[0])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # All addresses of its own namespace.
    made.bind(("::" if host.ip == "6" else "0.0.0.0", _port(action)))  # noqa: S104
    if "fastopen" in action.options:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, int(action.options["fastopen"]))
    made.listen(int(action.options.get("backlog", "128")))


def _accept(network: Network, host: Host, action: Action) -> str:
    listener, name = _opened(host, action.words[0]), action.words[1]
    if not network.run(_patience(action), [listener]):
        return NOTHING
    made, _ = listener.accept()
    made.setblocking(False)
    host.sockets[name] = made
    return OK


def _connect(network: Network, host: Host, action: Action) -> str:
    made = _socket_of(host, action.words[0])
    if "fastopen" in action.words:
        made.setsockopt(socket.IPPROTO_TCP, _FASTOPEN_CONNECT, 1)
    result = made.connect_ex(_target(host, action))
    if result != errno.EINPROGRESS or "nowait" in action.words:
        return _name_of(result) if result else OK
    return _finish_connecting(network, made, action) or OK


def _sendto(network: Network, host: Host, action: Action) -> str:
    """Connect and send at once; without a cookie the data follow when the handshake is over."""
    made = _socket_of(host, action.words[0])
    data = parse_data(action.words[2]) or b""
    try:
        sent = made.sendto(data, socket.MSG_FASTOPEN, _target(host, action))
    except BlockingIOError as error:
        if "nowait" in action.words:
            return _name_of(error.errno or errno.EIO)
        sent = 0
    if sent == len(data) or "nowait" in action.words:
        return str(sent)
    return _finish_connecting(network, made, action) or str(sent + made.send(data[sent:]))


def _visit(network: Network, host: Host, action: Action) -> str:
    """Connect to addresses of the prefix, many at a time; the server's program takes and closes."""
    first = int(action.options.get("from", "0"))
    numbers, taken = range(first, first + int(action.words[0])), 0
    for start in range(0, len(numbers), _AT_ONCE):
        for number in numbers[start : start + _AT_ONCE]:
            made = _socket_of(host, f"{_VISIT}{number}")
            with suppress(BlockingIOError):
                made.sendto(b"visit", socket.MSG_FASTOPEN, (str(PREFIX[number]), _port(action)))
        network.run(3 * network.half_s)
        for name in [name for name in host.sockets if name.startswith(_VISIT)]:
            taken += _syn_data_taken(host.sockets[name])
            _reset(host, name)
        network.run(2 * network.half_s)
        for listener in network.hosts["server"].sockets.values():
            while listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and network.run(
                0, [listener]
            ):
                listener.accept()[0].close()
    return str(taken)


def _flush(_network: Network, host: Host, _action: Action) -> None:
    raw = (socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
    with host.namespace.entered(), socket.socket(*raw) as control:
        known = [attributes(body, _GENERIC.size) for body in dump(control, *_GET_FAMILIES)]
        families = {text_of(each[_FAMILY_NAME]): number_of(each[_FAMILY_ID]) for each in known}
        if "tcp_metrics" not in families:
            raise OSError(errno.ENOENT, "the kernel has no tcp_metrics")
        order(control, families["tcp_metrics"], _GENERIC.pack(_METRICS_DELETE, 1, 0))


def _finish_connecting(network: Network, made: socket.socket, action: Action) -> str:
    """Wait for the handshake's end and return the error's name, ``nothing``, or no text."""
    if not network.run(_patience(action), writing=[made]):
        return NOTHING
    error = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return _name_of(error) if error else ""


def _send(network: Network, host: Host, action: Action) -> str:
    name, word = action.words
    opened, secured = _opened(host, name), host.secured.get(name)
    data = network.middlebox.copied if word == COPIED else parse_data(word) or b""
    if secured is None:
        return str(opened.send(data))
    secured.write(data)
    _send_all(network, opened, action, secured.leaving())
    return str(len(data))


def _recv(network: Network, host: Host, action: Action) -> str:
    opened, secured = _opened(host, action.words[0]), host.secured.get(action.words[0])
    wanted = parse_size(action.words[1]) or 1 if len(action.words) > 1 else 1
    received = _decrypt(network, opened, action, secured, b"") if secured else b""
    while len(received) < wanted:
        if not network.run(_patience(action), [opened]):
            return describe_data(received) if received else NOTHING
        part = opened.recv(_ROOM)
        if not part:
            return describe_data(received) if received else EOF
        received += _decrypt(network, opened, action, secured, part) if secured else part
    return describe_data(received)


def _hello(network: Network, host: Host, action: Action) -> str:
    opened = _opened(host, action.words[0])
    secured = _secure(host, action.words[0], client=True)
    sent = secured.say_hello(parse_data(action.options.get("early", "")) or b"")
    _send_all(network, opened, action, secured.leaving())
    return str(sent)


def _tls(network: Network, host: Host, action: Action) -> str:
    name = action.words[0]
    opened = _opened(host, name)
    secured = host.secured.get(name) or _secure(host, name, client=False)
    while not secured.shake_hands():
        readable = network.run(_patience(action), [opened])
        received = opened.recv(_ROOM) if readable else b""
        if not received:
            return EOF if readable else NOTHING
        secured.feed(received)
    _send_all(network, opened, action, secured.leaving())
    return secured.outcome


def _early(network: Network, host: Host, action: Action) -> None:
    _context_of(host).take_early(action.words[0])


def _secure(host: Host, name: str, *, client: bool) -> TlsEnd:
    """Have TLS on a socket from now on; its segments leave at once, as servers have them."""
    _opened(host, name).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    host.secured[name] = TlsEnd(_context_of(host), client=client)
    return host.secured[name]


def _context_of(host: Host) -> TlsContext:
    host.tls = host.tls or TlsContext()
    return host.tls


def _decrypt(
    network: Network, opened: socket.socket, action: Action, secured: TlsEnd, received: bytes
) -> bytes:
    """Return the data in what was received, and send what TLS answers to it."""
    secured.feed(received)
    data = secured.read()
    _send_all(network, opened, action, secured.leaving())
    return data


def _send_all(network: Network, made: socket.socket, action: Action, data: bytes) -> None:
    """Send ``data``; a first send that opens the connection may have to wait for that."""
    while data:
        try:
            data = data[made.send(data) :]
        except BlockingIOError:
            if failed := _finish_connecting(network, made, action):
                raise TimeoutError(errno.ETIMEDOUT, failed) from None


def _shutdown(network: Network, host: Host, action: Action) -> None:
    _opened(host, action.words[0]).shutdown(socket.SHUT_WR)


def _close(network: Network, host: Host, action: Action) -> None:
    _opened(host, action.words[0]).close()
    del host.sockets[action.words[0]]
    host.secured.pop(action.words[0], None)


def _abort(_network: Network, host: Host, action: Action) -> None:
    _reset(host, action.words[0])


def _reset(host: Host, name: str) -> None:
    opened = _opened(host, name)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("@ii", 1, 0))
    opened.close()
    del host.sockets[name]
    host.secured.pop(name, None)


def _set(network: Network, host: Host, action: Action) -> None:
    name, setting = action.words[0], action.words[1]
    opened = _socket_of(host, name)
    option, _, value = setting.partition("=")
    if option == "md5":
        for address in TARGETS.values():
            key = value.encode()
            entry = _MD5_KEY.pack(socket.AF_INET, 0, inet_aton(address), 0, 0, len(key), 0, key)
            opened.setsockopt(socket.IPPROTO_TCP, _MD5SIG, entry)
    else:
        opened.setsockopt(socket.IPPROTO_TCP, _OPTIONS[option], int(value))


def _syn_data_taken(opened: socket.socket) -> bool:
    told = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    return bool(told[_OPTIONS_BYTE] & _SYN_DATA)


def _info(network: Network, host: Host, action: Action) -> str:
    opened, field = _opened(host, action.words[0]), action.words[1]
    if field == "syn_data":
        return "yes" if _syn_data_taken(opened) else "no"
    told = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    return str(struct.unpack_from("=I", told, _NUMBERS[field])[0])


def _count(network: Network, host: Host, action: Action) -> str:
    name = action.words[0]
    now = read_all_counters(host.namespace)
    if name not in now:
        raise MissingError(f"line {action.line}: {action.text}: this kernel has no such counter")
    return str(now[name] - host.counted.get(name, 0))


def _sysctl(network: Network, host: Host, action: Action) -> None:
    for setting in action.words:
        name, _, value = setting.partition("=")
        host.namespace.write_sysctls({f"net.ipv4.{name}": value.replace(",", " ")})


def _key(network: Network, host: Host, action: Action) -> None:
    keys = ("-".join(key[at : at + 8] for at in range(0, 32, 8)) for key in action.words)
    host.namespace.write_sysctls({"net.ipv4.tcp_fastopen_key": ",".join(keys)})


def _window(network: Network, host: Host, action: Action) -> None:
    with host.namespace.entered(), open_control() as control:
        set_route(
            control, DEFAULT_ROUTES[host.ip], address_of(host.name, host.ip), device=DEVICE,
            metrics=encode_metrics({"initcwnd": int(action.words[0])}),
        )  # fmt: skip


_CALLS: dict[str, Callable[[Network, Host, Action], str | None]] = {
    "listen": _listen, "accept": _accept, "connect": _connect, "sendto": _sendto, "send": _send,
    "recv": _recv, "shutdown": _shutdown, "close": _close, "abort": _abort, "set": _set,
    "visit": _visit, "flush": _flush, "hello": _hello, "tls": _tls, "early": _early,
    "info": _info, "count": _count, "sysctl": _sysctl, "key": _key, "window": _window,
}  # fmt: skip
"""What performs each verb, and returns its result where that may be another than ``ok``."""


def _opened(host: Host, name: str) -> socket.socket:
    """Return the host's socket of that name.

    Raises:
        OSError: there is none, since the call that was to make it failed.
    """
    if name not in host.sockets:
        raise OSError(errno.EBADF, f"{host.name} has no socket {name}")
    return host.sockets[name]


def _socket_of(host: Host, name: str) -> socket.socket:
    """Return the host's socket of that name, made now unless there is one."""
    if name in host.sockets:
        return host.sockets[name]
    with host.namespace.entered():
        family = socket.AF_INET6 if host.ip == "6" else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    host.sockets[name] = made
    return made


def _name_of(number: int) -> str:
    """Return the name of an error as man pages of sockets have it."""
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]


def _port(action: Action) -> int:
    return int(action.options.get("port", "80"))


def _target(host: Host, action: Action) -> tuple[str, int]:
    return address_of(action.words[1], host.ip), _port(action)


def _patience(action: Action) -> float:
    return parse_time(action.options.get("within", _PATIENCE)) or 0.0
