"""Links in the words of other emulators, dummynet's pipes and Mininet's TCLink, as knobs of ours.

Each direction is a text of its own: ``bw 4Mbit/s delay 10ms queue 128Kbytes`` (ipfw(8), FreeBSD's
``sbin/ipfw/dummynet.c``), or ``bw=4, delay='10ms', max_queue_size=100`` (``TCIntf.config`` of
Mininet 2.3).  A word without a counterpart is refused by name; what acts otherwise here is said.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.validation import describe, validate
from testbed.model.trace import ETHERNET_BYTES

_BANDWIDTH = re.compile(
    r"(\d+)([KkMmGg]?)(?:(B|B/s|Bps|[Bb]ytes?(?:/s|ps)?)|b|bps|[Bb]its?(?:/s|ps)?)?"
)
_KILO = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}
_QUEUE = re.compile(r"(\d+)(?:(?:slots?)?|(([Kk])(?:B|[Bb]ytes?)?|B|[Bb]ytes?))")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(?:(s|secs?)|(ms|msecs?)|us|usecs?)")
SLOTS, PACKETS = ("pfifo", 50), ("pfifo", 1000)
"""The queue of a pipe that tells none (ipfw(8)), and of a TCLink's netem or device."""
FASTEST_MBIT = 1000
"""Mininet ignores a higher rate (``bwParamMax``)."""
_A_QUEUE = 'a queue of its own: write it in tc\'s words, such as link.qdisc = "fq_codel"'
_FLOWS = "several queues by flow, and a link has one"
_OFFLOAD = "an offload: see link.gso and link.gro"
_UNLIMITED = "no bw, and without one it is as fast as it can be: give it a rate"
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
    **dict.fromkeys(("gro", "disable_gro", "txo", "rxo"), _OFFLOAD),
    **dict.fromkeys(("params1", "params2"), "one direction: give each as a text of its own"),
}  # fmt: skip
"""Parameters of a TCLink that no link has, and why; one that asks for nothing is no problem."""
_PLACES = {"cls", "intf", "use_htb", "port1", "port2", "intfName1", "intfName2", "addr1", "addr2"}
"""Parameters that say where the link is, or what it is anyway."""
_LOST = "A lost packet has been on the line here, and takes its time; there it is lost before that."
_BFIFO = "bfifo, the queue up, counts Ethernet's header with each packet, as buffer_bytes does not."


@dataclass(slots=True)
class Pipe:
    """One direction of a link; its queue is one of tc(8)'s, which counts bytes or packets."""

    queue: tuple[str, int]
    kbit: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_pct: float = 0.0


@dataclass(frozen=True, slots=True)
class Translation:
    """A link in our words: its knobs, and sentences on what differs."""

    values: dict[str, Any]
    differs: tuple[str, ...]


Readers = Mapping[str, tuple[str, Callable[[Any], Any]]]
"""By word: the field of a pipe, and what reads its value or raises a ValueError."""


def from_dummynet(down: str, up: str | None = None) -> Translation:
    """Return the link of two pipes of dummynet; without ``up`` both are alike.

    Raises:
        ConfigurationError: with every word that cannot be translated.
    """
    differs = ["dummynet acts at the ticks of its kernel's timer, often 1 ms; here time is exact."]
    if not all("noerror" in text.split() for text in (down, up or down)):
        differs.append("A sender on dummynet's own machine is told of a full queue, without "
                       "noerror; here nobody is.")  # fmt: skip
    return _translate(_parse_pipe, SLOTS, (down, up), 0, differs)


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
    return _translate(_parse_tclink, PACKETS, (down, up), ETHERNET_BYTES, differs)


def _translate(
    parse: Callable[[str, Pipe], Iterator[str]], queue: tuple[str, int],
    texts: tuple[str, str | None], framing_bytes: int, differs: list[str],
) -> Translation:  # fmt: skip
    pipes = [Pipe(queue) for text in texts if text is not None]
    problems = [problem for text, pipe in zip(texts, pipes, strict=False)
                for problem in parse(text or "", pipe)]  # fmt: skip
    down, up = pipes[0], pipes[-1]
    if not problems:
        problems += [f"bw: {each.kbit:g} kbit/s: a link's rate is a whole number of kbit/s"
                     for each in pipes if each.kbit % 1]  # fmt: skip
        if down.jitter_ms != up.jitter_ms:
            problems.append("jitter: a link's delay_jitter_ms is of both directions")
    if problems:
        raise ConfigurationError(problems)
    values = _join(down, up) | {"framing_bytes": framing_bytes}
    _, errors = validate({"link": values}, {})
    if wrong := describe(errors, {"link": values}, lambda _: "this link"):
        raise ConfigurationError(wrong)
    also = {_LOST: down.loss_pct or up.loss_pct, _BFIFO: "bfifo" in values.get("qdisc_up", ""),
            "Jitter reorders packets there, not here.": up.jitter_ms}  # fmt: skip
    return Translation(values, (*differs, *(sentence for sentence, is_so in also.items() if is_so)))


def _join(down: Pipe, up: Pipe) -> dict[str, Any]:
    values: dict[str, Any] = {"rtt_ms": round(down.delay_ms + up.delay_ms, 6)}
    if down.delay_ms != up.delay_ms:
        values["delay_up_ms"] = up.delay_ms
    values |= {"down_kbit": int(down.kbit), "up_kbit": int(up.kbit)}
    in_bytes = [each.queue for each in (down, up) if each.queue[0] == "bfifo"][:1]
    if in_bytes:
        values["buffer_bytes"] = in_bytes[0][1]
    ways = (("qdisc_down", down.queue), ("qdisc_up", up.queue))
    queues = {way: " limit ".join(map(str, queue)) for way, queue in ways if queue not in in_bytes}
    alike = len(queues) == 2 and down.queue == up.queue
    values |= {"qdisc": queues["qdisc_down"]} if alike else queues
    if down.loss_pct != up.loss_pct:
        values |= {"loss_down_pct": down.loss_pct, "loss_up_pct": up.loss_pct}
    elif down.loss_pct:
        values["loss_pct"] = down.loss_pct
    return values | ({"delay_jitter_ms": down.jitter_ms} if down.jitter_ms else {})


def _take(pipe: Pipe, readers: Readers, word: str, value: Any, shown: str) -> Iterator[str]:
    name, read = readers[word]
    try:
        setattr(pipe, name, read(value))
    except ValueError as error:
        yield f"{shown}: {error}"


def _parse_pipe(text: str, pipe: Pipe) -> Iterator[str]:
    """Take what ``ipfw pipe N config`` says into ``pipe``, and yield what cannot be taken."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        yield f"{text}: {error}"
        return
    start = re.match(r"((sudo )?(\S*/)?ipfw )?pipe \d+ config( |$)", " ".join(words))
    words = words[len(start[0].split()) :] if start else words
    plain = ("droptail", "noerror")
    seen: set[str] = set()
    while words:
        word = words.pop(0)
        if word in seen:
            yield f"{word}: named twice; keep one"
        seen.add(word)
        if word in PIPE_WORDS:
            value = words.pop(0) if words else ""
            yield from _take(pipe, PIPE_WORDS, word, value, f"{word} {value}")
        elif word not in plain:
            near = did_you_mean(word, [*PIPE_WORDS, *plain])
            why = PIPE_REFUSED.get(word, f"not a word of `pipe N config`{near}")
            while words and words[0] not in {*PIPE_WORDS, *plain, *PIPE_REFUSED}:
                word += f" {words.pop(0)}"
            yield f"{word}: {why}"
    if not seen & {"bw", "bandwidth"}:
        yield f"{text}: {_UNLIMITED}"


def _bandwidth(value: str) -> float:
    found = _BANDWIDTH.fullmatch(value)
    if found is None:
        raise ValueError("not a rate such as 4Mbit/s, 256Kbit/s or 1MByte/s, in whole numbers")
    if not int(found[1]):
        raise ValueError("as fast as it can be, and a link has a rate")
    return int(found[1]) * _KILO[found[2].lower()] * (8 if found[3] else 1) / 1000


def _whole_ms(value: str) -> float:
    if not re.fullmatch(r"\d+(ms)?", value):
        raise ValueError("a whole number of ms is due: dummynet reads no other unit")
    return float(value.removesuffix("ms"))


def _size(value: str) -> tuple[str, int]:
    found = _QUEUE.fullmatch(value)
    if found is None or not int(found[1]):
        raise ValueError("not a size such as 128Kbytes, 131072Bytes or 50 (slots)")
    return "bfifo" if found[2] else "pfifo", int(found[1]) * (1024 if found[3] else 1)


def _share(value: str) -> float:
    if not re.fullmatch(r"0*\.\d+|0+|1(\.0*)?", value):
        raise ValueError("a share from 0 to 1 is due; losses in bursts are link.loss_bursts")
    return round(100 * float(value), 6)


PIPE_WORDS: Readers = {"bw": ("kbit", _bandwidth), "bandwidth": ("kbit", _bandwidth),
                       "delay": ("delay_ms", _whole_ms), "queue": ("queue", _size),
                       "plr": ("loss_pct", _share)}  # fmt: skip


def _parse_tclink(text: str, pipe: Pipe) -> Iterator[str]:
    """Take the parameters of a TCLink into ``pipe``, and yield what cannot be taken."""
    call = _read_call(text)
    if call is None:
        yield f"{text}: not parameters such as bw=4, delay='10ms', max_queue_size=100"
        return
    names = {keyword.arg or "**" for keyword in call.keywords}
    for keyword in call.keywords:
        name, shown = keyword.arg or "**", f"{keyword.arg or '**'}={ast.unparse(keyword.value)}"
        if name in _PLACES:
            continue
        try:
            value = ast.literal_eval(keyword.value)
        except ValueError:
            yield f"{shown}: write the value itself"
            continue
        if name in TCLINK_WORDS:
            yield from _take(pipe, TCLINK_WORDS, name, value, shown)
        elif name not in TCLINK_REFUSED:
            yield f"{shown}: no parameter of a TCLink{did_you_mean(name, TCLINK_WORDS)}"
        elif value:
            yield f"{shown}: {TCLINK_REFUSED[name]}"
    if "bw" not in names:
        yield f"{text}: {_UNLIMITED}"
    if "jitter" in names and "delay" not in names:
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


def _number(value: Any, most: float, words: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(f"{words} is due, from 0 to {most}")
    return float(value)


def _mbit(value: Any) -> float:
    if value == 0:
        raise ValueError("a rate above 0 is due")
    return round(_number(value, FASTEST_MBIT, "a rate in Mbit/s") * 1000, 6)


def _time_ms(value: Any) -> float:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("a text with a unit is due, such as '10ms'; tc takes a number for us")
    return round(float(found[1]) * (1000 if found[2] else 1 if found[3] else 0.001), 6)


def _packets(value: Any) -> tuple[str, int]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number of packets is due, from 1")
    return "pfifo", value


_percent = partial(_number, most=100, words="a number of percent")
TCLINK_WORDS: Readers = {"bw": ("kbit", _mbit), "delay": ("delay_ms", _time_ms),
                         "jitter": ("jitter_ms", _time_ms), "loss": ("loss_pct", _percent),
                         "max_queue_size": ("queue", _packets)}  # fmt: skip
