"""Queue of a user's choice before the line: set by tc(8), in its own words, and read back.

No queue is known here: tc reads the text, and what the kernel then says of the queue is what it
must say after each load (``testbed.lab.readback``).  tc is of Debian's iproute2, as ``ip`` is; the
one queue that it does not have yet is set without it.
"""

from __future__ import annotations

import errno
import re
import socket

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace
from testbed.base.suggest import did_you_mean
from testbed.lab.link import dualpi2
from testbed.lab.link.discipline import Discipline, has_kind, read_disciplines, set_options
from testbed.lab.link.scratch import find_unloaded, scratch_namespace
from testbed.lab.rtnetlink import open_control

PARENT, CLASS, HANDLE = "1:1", "10001", "2:"
"""The class of the shaper, which holds the queue, as tc and as the kernel have it; and the queue's
own name."""
LONGEST_ANSWER = 400
KINDS = (
    "bfifo", "cake", "choke", "codel", "drr", "dualpi2", "ets", "fq", "fq_codel", "fq_pie", "hfsc",
    "hhf", "htb", "pfifo", "pfifo_fast", "pfifo_head_drop", "pie", "prio", "qfq", "red", "sfb",
    "sfq", "skbprio", "tbf",
)  # fmt: skip
"""Queues of Linux (net/sched), of which a kernel has some."""
_NO_CLASSES = "is nothing without classes, and a text has none"
UNFIT = {
    "drr": _NO_CLASSES,
    "hfsc": _NO_CLASSES,
    "htb": _NO_CLASSES,
    "qfq": _NO_CLASSES,
    "netem": "is the line itself: set rtt_ms, down_kbit, up_kbit and loss_pct",
    "autorate-ingress": "changes the bandwidth that was asked for by itself",
}
"""Words for what would be no queue before this line, or not to its end the same."""


def set_queue(namespace: Namespace, device: str, text: str, knob: str = "qdisc") -> None:
    """Make ``text``, in the words of tc(8), the queue inside the shaper of ``device``.

    Raises:
        MissingError: tc does not understand it, or the kernel does not have it; with what tc says,
            and the nearest that there is.  ``knob`` is which of the link's asked for it.
    """
    words = text.split()
    # Whichever word names the kind: the kernel would load its module, which would stay.
    problem = find_unloaded(tuple(f"sch_{word}" for word in words))
    unfit = next((f"{word} {UNFIT[word]}" for word in words if word in UNFIT), None)
    if problem is None and unfit is None:
        problem = _set(namespace, device, words)
        if problem is None:
            return
    raise MissingError(
        f"link.{knob} = {text}: this queue cannot be set; "
        + (unfit or f"write it as tc(8) has it, or take a kernel that has it; {problem}")
    )


def _set(namespace: Namespace, device: str, words: list[str]) -> str | None:
    """Set the queue; why that failed, or ``None``."""
    argv = ("tc", "qdisc", "replace", "dev", device, "parent", PARENT, "handle", HANDLE, *words)
    if words[0] == dualpi2.KIND:
        try:
            options = dualpi2.encode(words[1:])
            with namespace.entered(), open_control() as control:
                set_options(control, f"{device} {CLASS}", words[0], options)
        except ValueError as error:
            return str(error)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return _list_kinds(words[0])
            return f"the kernel says: {error.strerror}"
        return None
    with namespace.entered():
        done = proc.run(argv, check=False)
    if done.returncode == 0:
        return None
    said = " ".join((done.stderr or done.stdout).split())
    told = f"`{' '.join(argv)}` says: {said[:LONGEST_ANSWER] or f'status {done.returncode}'}"
    if "kind is unknown" in said or said.startswith("Unknown qdisc"):
        return f"{told}; {_list_kinds(words[0])}"
    # tc names the word that it does not know, and says how it is used.
    wrong = next((word for word in words[1:] if f'"{word}"' in said), None)
    known = set(re.findall(r"[a-z][a-z0-9_-]+", said)) - set(words)
    return told if wrong is None else f"{told}{did_you_mean(wrong, known)}"


def _list_kinds(wrong: str) -> str:
    """Say which queues this kernel has, and which of them ``wrong`` is nearest to."""
    with scratch_namespace() as scratch, scratch.entered(), open_control() as control:
        there = [
            kind for kind in KINDS
            if find_unloaded((f"sch_{kind}",)) is None and has_kind(control, "lo", kind)
        ]  # fmt: skip
    fit = [kind for kind in there if kind not in UNFIT]
    return f"this kernel has {', '.join(fit)}{did_you_mean(wrong, fit)}"


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
    told = [line.removeprefix("qdisc ").replace(place, " ") for line in lines]
    queue = inside.get(f"{device} {CLASS}")
    if queue is not None and queue.kind == dualpi2.KIND:
        told = [dualpi2.describe(bytes.fromhex(queue.extras))]
    return inside, "; ".join(told)
