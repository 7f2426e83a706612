"""Watch the lab during a load: what is set and taken back again leaves its trace here.

The kernel tells of changed devices, routes, rules and disciplines (rtnetlink(7)), and of sysctls
that somebody writes (inotify(7) on /proc/sys).  Nothing is read before the load has ended, so that
watching wakes nobody.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from testbed.lab import rtnetlink
from testbed.lab.link.discipline import Discipline, Disciplines, parse_discipline
from testbed.lab.readback import describe_device, is_of_features
from testbed.lab.topology import Topology

_WRITTEN = 0x2  # IN_MODIFY
_EVENT = struct.Struct("=iIII")
_ROOM = 1 << 16
_FOLDERS = ("ipv4", "core")
_KINDS = {
    rtnetlink.DELLINK: "a device",
    rtnetlink.NEWNEIGH: "a neighbour",
    rtnetlink.DELNEIGH: "a neighbour",
    rtnetlink.NEWROUTE: "a route",
    rtnetlink.DELROUTE: "a route",
    rtnetlink.NEWRULE: "a rule",
    rtnetlink.DELRULE: "a rule",
    rtnetlink.NEWQDISC: "a discipline",
    rtnetlink.DELQDISC: "a discipline",
}
_OTHER = "addresses, classes or filters"


@dataclass(frozen=True, slots=True)
class Watch:
    """Sockets that are told of changes, by role, and a descriptor that is told of written sysctls.

    ``folders`` says which role's folder a watch of that descriptor stands for, ``devices`` are the
    names of each role's devices.
    """

    told: Mapping[str, socket.socket]
    written: int
    folders: Mapping[int, str]
    devices: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def read(self, table: Mapping[str, str], asked: Sequence[Disciplines] = ()) -> tuple[str, ...]:
        """A sentence for each change since the watch began, and each that was ``asked`` in vain.

        ``table`` is of the ``State`` then: a message that repeats what it says is no change.
        """
        due: dict[tuple[str, str], list[Discipline]] = {}
        for change in asked:
            for place, discipline in change.items():
                due.setdefault(place, []).append(discipline)
        changes = [line for role in self.told for line in self._read_role(role, table, due)]
        missing = [
            f"{role}: discipline of {name} was not set to {one.text!r} during the load"
            for (role, name), left in due.items()
            for one in left
        ]
        return tuple(dict.fromkeys([*changes, *missing, *self._read_sysctls()]))

    def _read_role(
        self, role: str, table: Mapping[str, str], due: dict[tuple[str, str], list[Discipline]]
    ) -> Iterator[str]:
        try:
            for kind, body in rtnetlink.read_changes(self.told[role]):
                if kind == rtnetlink.NEWQDISC:
                    name, found = parse_discipline(body, self.devices.get(role, {}))
                    left = due.get((role, name), [])
                    if left and found.has(left[0]):
                        del left[0]
                        continue
                if kind != rtnetlink.NEWLINK:
                    yield f"{role}: {_KINDS.get(kind, _OTHER)} changed during the load"
                    continue
                for name, value in describe_device(body)[1]:
                    if table.get(f"{role}: {name}") != value:
                        yield f"{role}: {name} was {value!r} during the load"
                if is_of_features(body):
                    yield f"{role}: offloads changed during the load"
        except OSError as error:
            yield f"{role}: more changed during the load than can be told ({error.strerror})"

    def _read_sysctls(self) -> Iterator[str]:
        while True:
            try:
                data = os.read(self.written, _ROOM)
            except BlockingIOError:
                return
            position = 0
            while position < len(data):
                watch, _, _, length = _EVENT.unpack_from(data, position)
                position += _EVENT.size
                name = data[position : position + length].rstrip(b"\0").decode()
                position += length
                place = self.folders.get(watch, "sysctls")
                yield f"{place}.{name} was written during the load"


@contextmanager
def watch(topology: Topology) -> Iterator[Watch]:
    """Watch all namespaces from now on; the undo closes what was opened.

    Raises:
        OSError: the kernel does not let it be watched.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with ExitStack() as undo:
        inotify = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if inotify < 0:
            raise _error("inotify")
        undo.callback(os.close, inotify)
        sockets: dict[str, socket.socket] = {}
        folders: dict[int, str] = {}
        devices: dict[str, Mapping[int, str]] = {}
        senders = dict(topology.plan.senders)
        for role in topology.roles:
            with topology.role(role).entered():
                sockets[role] = undo.enter_context(rtnetlink.open_changes())
                devices[role] = dict(socket.if_nameindex())
                for folder in _FOLDERS if role in senders else ():
                    folders[_add(libc, inotify, folder)] = f"{role}: net.{folder}"
        # Such as rmem_max, which holds for all namespaces and is in no other than the machine's.
        folders[_add(libc, inotify, "core")] = "machine: net.core"
        yield Watch(sockets, inotify, folders, devices)


def _add(libc: ctypes.CDLL, inotify: int, folder: str) -> int:
    """Watch a folder of sysctls in this thread's namespace; return the watch."""
    path = f"/proc/sys/net/{folder}"
    descriptor: int = libc.inotify_add_watch(inotify, path.encode(), _WRITTEN)
    if descriptor < 0:
        raise _error(path)
    return descriptor


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"cannot watch {what}: {os.strerror(number)}")
