"""Queue of a user's choice before the line: set by tc(8), in its own words, and read back.

No queue is known here: tc reads the text, and what the kernel then says of the queue is what it
must say after each load (``testbed.lab.readback``).  tc is of Debian's iproute2, as ``ip`` is.
"""

from __future__ import annotations

import socket

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace
from testbed.lab.link.discipline import Discipline, read_disciplines
from testbed.lab.link.scratch import find_unloaded
from testbed.lab.rtnetlink import open_control

PARENT, HANDLE = "1:1", "2:"
"""The class of the shaper, which holds the queue, and the queue's own name."""
LONGEST_ANSWER = 400


def set_queue(namespace: Namespace, device: str, text: str) -> None:
    """Make ``text``, in the words of tc(8), the queue inside the shaper of ``device``.

    Raises:
        MissingError: tc does not understand it, or the kernel does not have it; with what tc says.
    """
    words = text.split()
    # Whichever word names the kind: the kernel would load its module, which would stay.
    problem = find_unloaded(tuple(f"sch_{word}" for word in words))
    if problem is None:
        argv = ("tc", "qdisc", "replace", "dev", device, "parent", PARENT, "handle", HANDLE, *words)
        with namespace.entered():
            done = proc.run(argv, check=False)
        if done.returncode == 0:
            return
        said = " ".join((done.stderr or done.stdout).split())[:LONGEST_ANSWER]
        problem = f"`{' '.join(argv)}` says: {said or f'status {done.returncode}'}"
    raise MissingError(
        f"link.qdisc = {text}: this queue cannot be set; write it as tc(8) has it, or take a "
        f"kernel that has it; {problem}"
    )


def read_queue(namespace: Namespace, device: str) -> tuple[dict[str, Discipline], str]:
    """Read what is inside the shaper of ``device``: by ``DEVICE PARENT``, and as tc puts it."""
    with namespace.entered():
        with open_control() as control:
            names = {socket.if_nametoindex(device): device}
            disciplines = read_disciplines(control, names)
        done = proc.run(("tc", "-d", "qdisc", "show", "dev", device))
    inside = {name: queue for name, queue in disciplines.items() if name.startswith(f"{device} ")}
    place = f" {HANDLE} parent {PARENT} "
    lines = (line.strip() for line in done.stdout.splitlines() if " parent " in line)
    return inside, "; ".join(line.removeprefix("qdisc ").replace(place, " ") for line in lines)
