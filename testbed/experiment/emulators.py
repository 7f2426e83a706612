"""Links in the words of other emulators, dummynet's pipes and Mininet's TCLink, as knobs of ours.

Each direction is a text of its own: ``bw 4Mbit/s delay 10ms queue 128Kbytes`` (ipfw(8), FreeBSD's
``sbin/ipfw/dummynet.c``), or ``bw=4, delay='10ms', max_queue_size=100`` (``TCIntf.config`` of
Mininet 2.3).  A word without a counterpart is refused by name; what acts otherwise here is said.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.validation import describe, validate
from testbed.model.trace import ETHERNET_BYTES

_KILO = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}
_BANDWIDTH = re.compile(
    r"(\d+)([KkMmGg]?)(?:(B|B/s|Bps|[Bb]ytes?(?:/s|ps)?)|b|bps|[Bb]its?(?:/s|ps)?)?"
)
_QUEUE = re.compile(r"(\d+)(?:(slots?)?|([Kk])(?:B|[Bb]ytes?)?|B|[Bb]ytes?)")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|secs?|ms|msecs?|us|usecs?)")
_TIME_MS = {"s": 1000.0, "m": 1.0, "u": 0.001}
DEFAULT_SLOTS = 50
"""Slots of a pipe's queue that is not told (ipfw(8))."""
DEFAULT_PACKETS = 1000
"""Packets that a TCLink's netem holds, or the queue of its device where it has none."""
FASTEST_MBIT = 1000
"""Mininet ignores a higher rate (``bwParamMax``)."""
_A_QUEUE = 'a queue of its own: write it in tc\'s words, such as link.qdisc = "fq_codel"'
_FLOWS = "several queues by flow, and a link has one"
PIPE_REFUSED = {
    "burst": "what passes at once after a pause, and a link lets nothing pass sooner",
    "profile": "delays from a file; take a trace (link.trace_down) or link.delay_jitter_ms",
    **dict.fromkeys(("mask", "flow_mask", "sched_mask", "buckets", "weight", "type", "lmax", "pri",
                     "sched", "pipe"), _FLOWS),
    **dict.fromkeys(("red", "gred", "codel", "pie", "fq_codel", "fq_pie", "ecn"), _A_QUEUE),
}  # fmt: skip
"""Words of a pipe that no link has, and why."""
TCLINK_REFUSED = {
    **dict.fromkeys(("use_hfsc", "use_tbf", "latency_ms", "speedup"), "another shaper than HTB"),
    **dict.fromkeys(("enable_ecn", "enable_red"), _A_QUEUE),
    **dict.fromkeys(("gro", "disable_gro", "txo", "rxo"), "an offload: see link.gso and link.gro"),
    **dict.fromkeys(("params1", "params2"), "one direction: give each as a text of its own"),
}  # fmt: skip
"""Parameters of a TCLink that no link has, and why; one that asks for nothing is no problem."""
_OF_PLACES = {"cls", "intf", "use_htb", "port1", "port2", "intfName1", "intfName2", "addr1",
              "addr2"}  # fmt: skip
"""Parameters that say where the link is, or what it is anyway."""
_LOST = "A lost packet has been on the line here, and takes its time; there it is lost before that."

_BFIFO = "bfifo, the queue up, counts Ethernet's header with each packet, as buffer_bytes does not."


@dataclass(slots=True)
class Pipe:
    """One direction of a link; ``queue`` is its size, in bytes or in packets."""

    kbit: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_pct: float = 0.0
    queue: int = DEFAULT_SLOTS
    in_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Translation:
    """A link in our words: its knobs, and sentences on what differs."""

    values: dict[str, Any]
    differs: tuple[str, ...] = field(default=())


Parse = Callable[[str, Pipe], Iterator[str]]


def from_dummynet(down: str, up: str | None = None) -> Translation:
    """Return the link of two pipes of dummynet; without ``up`` both are alike.

    Raises:
        ConfigurationError: with every word that cannot be translated.
    """
    differs = ["dummynet acts at the ticks of its kernel's timer, often 1 ms; here time is exact."]
    if not all("noerror" in text.split() for text in (down, up or down)):
        differs.append("A sender on dummynet's own machine is told of a full queue, without "
                       "noerror; here nobody is.")  # fmt: skip
    return _translate(_parse_pipe, (down, up), {"framing_bytes": 0}, differs)


def from_mininet(down: str, up: str | None = None) -> Translation:
    """Return the link of a TCLink's parameters; without ``up`` both directions are alike.

    Raises:
        ConfigurationError: with every parameter that cannot be translated.
    """
    differs = [
        "Mininet's HTB lets 15 kB pass at once after a pause; here the line is never faster.",
        "Mininet shapes at the hosts' own devices, which hold TCP back; here a router drops.",
        "max_queue_size also counts packets in the delay; here only those that wait.",
        "HTB counts Ethernet's header with each packet, and so does this link (framing_bytes).",
    ]
    link = _translate(_parse_tclink, (down, up), {"framing_bytes": ETHERNET_BYTES}, differs)
    if link.values.get("delay_jitter_ms"):
        return Translation(link.values, (*link.differs, "Jitter reorders packets there, not here."))
    return link


def _translate(
    parse: Parse, texts: tuple[str, str | None], fixed: dict[str, int], differs: list[str]
) -> Translation:
    down, up = Pipe(), Pipe()
    problems = list(parse(texts[0], down))
    if texts[1] is None:
        up = down
    else:
        problems += parse(texts[1], up)
    if not problems:
        problems += _unequal(down, up)
    if problems:
        raise ConfigurationError(problems)
    values = _join(down, up) | fixed
    _, errors = validate({"link": values}, {})
    if wrong := describe(errors, {"link": values}, lambda _: "this link"):
        raise ConfigurationError(wrong)
    if down.loss_pct or up.loss_pct:
        differs.append(_LOST)
    if "bfifo" in values.get("qdisc_up", ""):
        differs.append(_BFIFO)
    return Translation(values, tuple(differs))


def _unequal(down: Pipe, up: Pipe) -> Iterator[str]:
    for each in (down,) if down == up else (down, up):
        if each.kbit % 1:
            yield f"bw: {each.kbit:g} kbit/s: a link's rate is a whole number of kbit/s"
    if down.jitter_ms != up.jitter_ms:
        yield "jitter: a link's delay_jitter_ms is of both directions; make them alike"


def _join(down: Pipe, up: Pipe) -> dict[str, Any]:
    values: dict[str, Any] = {"rtt_ms": round(down.delay_ms + up.delay_ms, 6)}
    if down.delay_ms != up.delay_ms:
        values["delay_up_ms"] = up.delay_ms
    values |= {"down_kbit": int(down.kbit), "up_kbit": int(up.kbit)}
    buffers = [each.queue for each in (down, up) if each.in_bytes]
    if buffers:
        values["buffer_bytes"] = buffers[0]
    queues = {way: f"{'b' if each.in_bytes else 'p'}fifo limit {each.queue}"
              for way, each in (("down", down), ("up", up))
              if not (each.in_bytes and each.queue == buffers[0])}  # fmt: skip
    if len(queues) == 2 and queues["down"] == queues["up"]:
        values["qdisc"] = queues["down"]
    else:
        values |= {f"qdisc_{way}": queue for way, queue in queues.items()}
    if down.loss_pct != up.loss_pct:
        values |= {"loss_down_pct": down.loss_pct, "loss_up_pct": up.loss_pct}
    elif down.loss_pct:
        values["loss_pct"] = down.loss_pct
    return values | ({"delay_jitter_ms": down.jitter_ms} if down.jitter_ms else {})


def _parse_pipe(text: str, pipe: Pipe) -> Iterator[str]:
    """Take what ``ipfw pipe N config`` says into ``pipe``, and yield what cannot be taken."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        yield f"{text}: {error}"
        return
    start = re.match(r"((sudo )?(\S*/)?ipfw )?pipe \d+ config( |$)", " ".join(words))
    words = words[len(start[0].split()) :] if start else words
    read = {"bw": _read_bw, "bandwidth": _read_bw, "delay": _read_delay, "queue": _read_queue,
            "plr": _read_plr}  # fmt: skip
    plain = ("droptail", "noerror")
    known = {*read, *plain, *PIPE_REFUSED}
    seen: set[str] = set()
    while words:
        word = words.pop(0)
        if word in seen:
            yield f"{word}: named twice; keep one"
        seen.add(word)
        if word in read:
            value = words.pop(0) if words else ""
            try:
                read[word](value, pipe)
            except ValueError as error:
                yield f"{word} {value}: {error}"
        elif word not in plain:
            near = did_you_mean(word, [*read, *plain])
            why = PIPE_REFUSED.get(word, f"not a word of `pipe N config`{near}")
            while words and words[0] not in known:
                word += f" {words.pop(0)}"
            yield f"{word}: {why}"
    if not seen & {"bw", "bandwidth"}:
        yield f"{text}: no bw, and a pipe without one is as fast as it can be: give it a rate"


def _read_bw(value: str, pipe: Pipe) -> None:
    found = _BANDWIDTH.fullmatch(value)
    if found is None:
        raise ValueError("not a rate such as 4Mbit/s, 256Kbit/s or 1MByte/s, in whole numbers")
    pipe.kbit = int(found[1]) * _KILO[found[2].lower()] * (8 if found[3] else 1) / 1000
    if not pipe.kbit:
        raise ValueError("as fast as it can be, and a link has a rate")


def _read_delay(value: str, pipe: Pipe) -> None:
    found = re.fullmatch(r"(\d+)(ms)?", value)
    if found is None:
        raise ValueError("a whole number of ms is due: dummynet reads no other unit")
    pipe.delay_ms = float(found[1])


def _read_queue(value: str, pipe: Pipe) -> None:
    found = _QUEUE.fullmatch(value)
    if found is None or not int(found[1]):
        raise ValueError("not a size such as 128Kbytes, 131072Bytes or 50 (slots)")
    pipe.in_bytes = not value.isdigit() and not found[2]
    pipe.queue = int(found[1]) * (1024 if found[3] else 1)


def _read_plr(value: str, pipe: Pipe) -> None:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError("a share of packets from 0 to 1 is due; a chain of losses is "
                         "link.loss_bursts")  # fmt: skip
    pipe.loss_pct = round(100 * share, 6)


def _parse_tclink(text: str, pipe: Pipe) -> Iterator[str]:
    """Take the parameters of a TCLink into ``pipe``, and yield what cannot be taken."""
    pipe.queue = DEFAULT_PACKETS
    call = _read_call(text)
    if call is None:
        yield f"{text}: not parameters such as bw=4, delay='10ms', max_queue_size=100"
        return
    read = {"bw": _set_bw, "delay": _set_delay, "jitter": _set_jitter, "loss": _set_loss,
            "max_queue_size": _set_queue}  # fmt: skip
    given: dict[str, Any] = {}
    for keyword in call.keywords:
        name = keyword.arg or "**"
        if name in _OF_PLACES:
            continue
        try:
            given[name] = ast.literal_eval(keyword.value)
        except ValueError:
            yield f"{name}={ast.unparse(keyword.value)}: write the value itself"
            continue
        if name in read:
            try:
                read[name](given[name], pipe)
            except ValueError as error:
                yield f"{name}={given[name]!r}: {error}"
        elif name not in TCLINK_REFUSED:
            yield f"{name}: no parameter of a TCLink{did_you_mean(name, [*read])}"
        elif given[name]:
            yield f"{name}={given[name]!r}: {TCLINK_REFUSED[name]}"
    if "bw" not in {keyword.arg for keyword in call.keywords}:
        yield f"{text}: no bw, and a TCLink without one is as fast as it can be: give it a rate"
    if "jitter" in given and "delay" not in given:
        yield "jitter: Mininet sets none without a delay"


def _read_call(text: str) -> ast.Call | None:
    for source in (text, f"TCLink({text})"):
        try:
            parsed = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            continue
        if isinstance(parsed, ast.Call) and (source is text or not parsed.args):
            return parsed
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _set_bw(value: Any, pipe: Pipe) -> None:
    if not _is_number(value) or not 0 < value <= FASTEST_MBIT:
        raise ValueError(f"a rate in Mbit/s is due, above 0 and up to {FASTEST_MBIT}")
    pipe.kbit = round(value * 1000, 6)


def _time_ms(value: Any) -> float:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("a text with a unit is due, such as '10ms'; tc takes a number for us")
    return round(float(found[1]) * _TIME_MS[found[2][0]], 6)


def _set_delay(value: Any, pipe: Pipe) -> None:
    pipe.delay_ms = _time_ms(value)


def _set_jitter(value: Any, pipe: Pipe) -> None:
    pipe.jitter_ms = _time_ms(value)


def _set_loss(value: Any, pipe: Pipe) -> None:
    if not _is_number(value) or not 0 <= value <= 100:
        raise ValueError("a number of percent is due, from 0 to 100")
    pipe.loss_pct = float(value)


def _set_queue(value: Any, pipe: Pipe) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a whole number of packets is due, from 1")
    pipe.queue = value
