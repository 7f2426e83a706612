"""Queueing disciplines, set and read back: kind, settings, counters (tc-tbf(8), tc-netem(8)).

``trace`` is our own, of the virtual kernels' patches: net/sched/sch_trace.c there describes it.

Sources: include/uapi/linux/pkt_sched.h, gen_stats.h; sizes are in bytes, times in nanoseconds.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from testbed.lab.link.statistics import read_statistics
from testbed.lab.rtnetlink import (
    GETQDISC,
    GETTCLASS,
    NEWQDISC,
    REPLACE,
    attribute,
    attributes,
    dump,
    number_of,
    order,
    text_of,
)
from testbed.model.trace import Trace

QUESTION = struct.pack("=BxxxiIII", 0, 0, 0, 0, 0)
NONE = "noqueue"
"""What a virtual device has when nobody gives it anything: packets pass at once."""
ROOT = 0xFFFFFFFF
FIRST, SECOND = 0x10000, 0x20000  # 1:0, 2:0
TICK_NS = 64
LOSS_RESOLUTION_PCT = 1e-4
DISTRIBUTION_SCALE = 8192
"""What a standard deviation is in a table of netem's."""

_HEADER = struct.Struct("=BxxxiIII")  # struct tcmsg
_KIND, _OPTIONS, _STATS2, _STAB = 1, 2, 7, 8
_NESTED = 0x8000
_BANDED = "prio"
"""Whose classes are there from the beginning, each with counts of its own (tc-prio(8))."""
_STATS_BASIC, _STATS_QUEUE, _STATS_APP = 1, 3, 4
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_TBF = struct.Struct("=BBHhHI BBHhHI III")
_NETEM = struct.Struct("=IIIIII")
_NETEM_TABLE, _NETEM_CORRUPT, _NETEM_LOSS, _NETEM_RATE = 2, 4, 5, 6
_NETEM_RATE64, _NETEM_PAD, _NETEM_DELAY64, _NETEM_JITTER64, _NETEM_SEED = 8, 9, 10, 11, 14
BURSTS = ("to_bad_pct", "to_good_pct", "bad_kept_pct", "good_loss_pct")  # struct tc_netem_gemodel
_DRAWN = ("jitter_ns", "duplicate_pct", *BURSTS)
_GILBERT_ELLIOTT = 2
_NETEM_TOLD = struct.Struct("=7Q")  # struct tc_netem_xstats
_TRACE = struct.Struct("=qIIIIII")
_TRACE_PARMS, _TRACE_PATH, _TRACE_ONCE = 1, 2, 1
_ETHERNET = 1
_SIZES = struct.Struct("=BBhiIIII")


@dataclass(frozen=True, slots=True)
class Discipline:
    """One discipline; ``extras`` is whatever else is set, ``drawn`` the seed of a netem's chance.

    ``packets`` were let through, ``dropped`` not, ``queued`` are inside; ``statistics`` is what it
    counts beyond that, by the kernel's names.  A netem damaged ``corrupted`` and doubled
    ``duplicated`` of them; ``None``: its kernel does not tell.  ``table`` are the draws of its
    jitter, which no kernel tells.
    A trace begins at ``origin_ns`` of CLOCK_REALTIME and ends ``once``, which each load sets anew;
    ``file`` has it where it is first given.
    """

    kind: str
    settings: Mapping[str, float] = field(default_factory=dict)
    extras: str = ""
    drawn: str = ""
    packets: int = 0
    dropped: int = 0
    queued: int = 0
    statistics: Mapping[str, int] = field(default_factory=dict)
    corrupted: int | None = None
    duplicated: int | None = None
    table: bytes = b""
    origin_ns: int = 0
    once: bool = False
    file: str = ""

    @property
    def text(self) -> str:
        """All that is set, in a line."""
        told = [self.kind, *(f"{name} {value:.10g}" for name, value in self.settings.items())]
        return " ".join(part for part in (*told, self.extras, self.drawn) if part)

    def has(self, wanted: Discipline) -> bool:
        """Whether it is ``wanted``, as far as the kernel's own units can tell."""
        if (self.kind, self.extras) != (wanted.kind, wanted.extras):
            return False
        if (self.origin_ns, self.once) != (wanted.origin_ns, wanted.once):
            return False
        if self.settings.keys() != wanted.settings.keys():
            return False
        if wanted.drawn and self.drawn not in ("", wanted.drawn):  # before 6.6 none is told
            return False
        # Times are kept in ticks, the bucket as time of the line, a probability in 32 bits.
        tick = self.settings.get("rate_bytes_s", 0.0) * TICK_NS / 1e9
        room = {"burst_bytes": 1.0 + tick, "delay_ns": TICK_NS, "jitter_ns": TICK_NS}
        return all(
            abs(value - wanted.settings[name])
            <= (LOSS_RESOLUTION_PCT if name.endswith("_pct") else room.get(name, 0.0))
            for name, value in self.settings.items()
        )


Disciplines = dict[tuple[str, str], Discipline]
"""By role, and device (``DEVICE PARENT`` of one inside another)."""


def read_disciplines(control: socket.socket, devices: Mapping[int, str]) -> dict[str, Discipline]:
    """All disciplines of the namespace of ``control``, by ``DEVICE`` or ``DEVICE PARENT``."""
    bodies = dump(control, GETQDISC, QUESTION)
    found = dict(parse_discipline(body, devices) for body in bodies)
    for index, device in devices.items():
        for place, discipline in found.items():
            if discipline.kind == _BANDED and place.partition(" ")[0] == device:
                bands = dict(_read_bands(control, index))
                found[place] = replace(discipline, statistics=bands)
    return found


def _read_bands(control: socket.socket, index: int) -> Iterator[tuple[str, int]]:
    """Yield what each band of the only prio of a device let through and dropped."""
    for body in dump(control, GETTCLASS, _HEADER.pack(0, index, 0, 0, 0)):
        attrs = attributes(body, _HEADER.size)
        if text_of(attrs[_KIND]) == _BANDED:
            _, _, handle, _, _ = _HEADER.unpack_from(body)
            packets, dropped, _ = _read_counts(attributes(attrs.get(_STATS2, b"")))
            yield f"band{(handle & 0xFFFF) - 1}.packets", packets
            yield f"band{(handle & 0xFFFF) - 1}.dropped", dropped


def _read_counts(stats: Mapping[int, bytes]) -> tuple[int, int, int]:
    """Packets that were let through, that were dropped, and that are queued."""
    packets = struct.unpack_from("=QI", stats[_STATS_BASIC])[1] if _STATS_BASIC in stats else 0
    queue = struct.unpack_from("=III", stats.get(_STATS_QUEUE, bytes(12)))
    return packets, queue[2], queue[0]


def tbf(rate_kbit: int, burst_bytes: int, buffer_bytes: int, overhead_bytes: int) -> Discipline:
    """The buffer that ``tc ... stab overhead O tbf rate R burst B limit L`` makes."""
    return Discipline("tbf", {
        "rate_bytes_s": rate_kbit * 125.0, "burst_bytes": float(burst_bytes),
        "limit_bytes": float(buffer_bytes), "overhead_bytes": float(overhead_bytes),
    })  # fmt: skip


def netem(
    rate_kbit: int,
    delay_ns: int,
    limit_packets: int,
    overhead_bytes: int,
    loss_pct: float,
    **more: float,
) -> Discipline:
    """The delay that ``tc ... netem limit N delay D loss P rate R O`` makes.

    ``more`` are settings as ``_read_netem`` names them; those of 0 are left out.
    """
    kept = {name: value for name, value in more.items() if value or name in BURSTS}
    return Discipline("netem", {
        "rate_bytes_s": rate_kbit * 125.0, "delay_ns": float(delay_ns),
        "limit_packets": float(limit_packets), "overhead_bytes": float(overhead_bytes),
        "loss_pct": loss_pct, **kept,
    })  # fmt: skip


def without_draws(delay: Discipline) -> Discipline:
    """A netem with the delay of ``delay`` alone; what it leaves out, the kernel would keep."""
    kept = {name: value for name, value in delay.settings.items() if name not in _DRAWN}
    return replace(delay, settings=kept | {"loss_pct": 0.0, "corrupt_pct": 0.0}, table=b"")


def by_trace(trace: Trace, buffer_bytes: int, room: int, overhead_bytes: int | None) -> Discipline:
    """The buffer out of which packets leave at the opportunities of ``trace``.

    Inside another the kernel lets no overhead be told: ``None``.
    """
    told = {} if overhead_bytes is None else {"overhead_bytes": float(overhead_bytes)}
    return Discipline("trace", {
        "limit_bytes": float(buffer_bytes), "room_bytes": float(room),
        "opportunities": float(len(trace.times)), "end_ms": float(trace.end_ms),
        "crc": float(trace.crc), **told,
    })  # fmt: skip


def set_discipline(control: socket.socket, place: str, wanted: Discipline) -> None:
    """Make ``wanted`` the discipline of ``place``, instead of what is there.

    Args:
        control: of the namespace, in which this thread is.
        place: ``DEVICE``, or ``DEVICE PARENT`` of one inside another: that of ``DEVICE`` is 1:0,
            its class ``10001``.
        wanted: what to set.

    Raises:
        OSError: the kernel refuses; ENOENT: it has no such discipline.
    """
    order(control, NEWQDISC, head_of(place, wanted) + encode_discipline(wanted), REPLACE)


def head_of(place: str, wanted: Discipline) -> bytes:
    """Return the header of a message that makes ``wanted`` that of ``place``, in its namespace."""
    device, _, inside = place.partition(" ")
    handle, parent = (0, int(inside, 16)) if inside else (FIRST, ROOT)
    if wanted.kind == NONE:
        handle = 0
    return _HEADER.pack(0, socket.if_nametoindex(device), handle, parent, 0)


def set_options(control: socket.socket, place: str, kind: str, options: bytes) -> None:
    """Make a discipline with ``options`` as the kernel has them that of ``DEVICE PARENT``.

    Raises:
        OSError: as ``set_discipline``.
    """
    device, _, inside = place.partition(" ")
    body = attribute(_KIND, kind.encode() + b"\0") + attribute(_NESTED | _OPTIONS, options)
    _replace(control, device, SECOND, int(inside, 16), body)


def has_kind(control: socket.socket, device: str, kind: str) -> bool:
    """Whether the kernel has a discipline, by trying it on ``device``; one may want options."""
    try:
        _replace(control, device, 0, ROOT, attribute(_KIND, kind.encode() + b"\0"))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _replace(control: socket.socket, device: str, handle: int, parent: int, body: bytes) -> None:
    head = _HEADER.pack(0, socket.if_nametoindex(device), handle, parent, 0)
    order(control, NEWQDISC, head + body, REPLACE)


def as_told(wanted: Discipline) -> Discipline:
    """Return ``wanted`` as a kernel tells it that has it, in the kernel's units."""
    head = _HEADER.pack(0, 1, FIRST, ROOT, 0)
    return parse_discipline(head + encode_discipline(wanted), {})[1]


def encode_discipline(wanted: Discipline) -> bytes:
    """Return the attributes of a message that makes ``wanted``; ``parse_discipline`` reads them."""
    settings = wanted.settings
    body = attribute(_KIND, wanted.kind.encode() + b"\0")
    if wanted.kind in _WRITERS:
        written = _WRITERS[wanted.kind](settings)
        if wanted.table:
            written += attribute(_NETEM_TABLE, wanted.table)
        if wanted.drawn:
            written += attribute(_NETEM_SEED, bytes.fromhex(wanted.drawn))
        body += attribute(_OPTIONS, written)
    if wanted.kind == "trace":
        body += attribute(_OPTIONS, _write_trace(wanted))
    if wanted.kind in ("tbf", "trace") and "overhead_bytes" in settings:
        sizes = _SIZES.pack(0, 0, 0, round(settings["overhead_bytes"]), _ETHERNET, 0, 0, 0)
        body += attribute(_STAB, attribute(1, sizes))
    return body


def _write_tbf(settings: Mapping[str, float]) -> bytes:
    rate, burst = round(settings["rate_bytes_s"]), round(settings["burst_bytes"])
    ticks = round(burst * 1e9 / rate / TICK_NS)
    limit = round(settings["limit_bytes"])
    parms = _TBF.pack(0, _ETHERNET, 0, 0, 0, rate, *(0,) * 6, limit, ticks, 0)
    return attribute(_TBF_PARMS, parms) + attribute(_TBF_BURST, struct.pack("=I", burst))


def _write_netem(settings: Mapping[str, float]) -> bytes:
    delay_ns, rate = round(settings["delay_ns"]), round(settings["rate_bytes_s"])
    jitter_ns = round(settings.get("jitter_ns", 0.0))
    loss, twice, corrupt = (
        _chance(settings.get(name, 0.0)) for name in ("loss_pct", "duplicate_pct", "corrupt_pct")
    )
    limit, overhead = round(settings["limit_packets"]), round(settings["overhead_bytes"])
    body = (
        _NETEM.pack(delay_ns // TICK_NS, limit, loss, 0, twice, jitter_ns // TICK_NS)
        + attribute(_NETEM_RATE, struct.pack("=IiIi", rate, overhead, 0, 0))
        + attribute(_NETEM_DELAY64, struct.pack("=q", delay_ns))
    )
    if jitter_ns:
        body += attribute(_NETEM_JITTER64, struct.pack("=q", jitter_ns))
    if "corrupt_pct" in settings:
        body += attribute(_NETEM_CORRUPT, struct.pack("=II", corrupt, 0))
    if BURSTS[0] in settings:
        chances = struct.pack("=4I", *(_chance(settings[name]) for name in BURSTS))
        body += attribute(_NETEM_LOSS, attribute(_GILBERT_ELLIOTT, chances))
    return body


def _chance(pct: float) -> int:
    return round(pct / 100.0 * 0xFFFFFFFF)


def _write_trace(wanted: Discipline) -> bytes:
    limit, room = (round(wanted.settings[name]) for name in ("limit_bytes", "room_bytes"))
    flags = _TRACE_ONCE if wanted.once else 0
    parms = attribute(_TRACE_PARMS, _TRACE.pack(wanted.origin_ns, limit, room, flags, 0, 0, 0))
    path = attribute(_TRACE_PATH, wanted.file.encode() + b"\0") if wanted.file else b""
    return parms + path


_WRITERS = {"tbf": _write_tbf, "netem": _write_netem}


def parse_discipline(body: bytes, devices: Mapping[int, str]) -> tuple[str, Discipline]:
    """Name (``DEVICE``, or ``DEVICE PARENT`` of one inside another) and content of a discipline."""
    _, index, _, parent, _ = _HEADER.unpack_from(body)
    attrs = attributes(body, _HEADER.size)
    kind, options = text_of(attrs[_KIND]), attrs.get(_OPTIONS, b"")
    if kind in _READERS:
        settings, extras, drawn = _READERS[kind](options)
    else:
        settings, extras, drawn = {}, _without_changing(kind, options).hex(), ""
    if _STAB in attrs:
        sizes = _SIZES.unpack_from(attributes(attrs[_STAB])[1])
        settings["overhead_bytes"] = float(sizes[3])
        if sizes[5] or sizes[4] != _ETHERNET:
            extras = f"{extras} mpu {sizes[5]} linklayer {sizes[4]}".strip()
    stats = attributes(attrs.get(_STATS2, b""))
    name = devices.get(index, "?") + ("" if parent == ROOT else f" {parent:x}")
    told = stats.get(_STATS_APP, b"")
    counted = read_statistics(kind, told, options)
    found = Discipline(kind, settings, extras, drawn, *_read_counts(stats), counted)
    if kind == "netem" and len(told) >= _NETEM_TOLD.size:
        _, lost, corrupted, duplicated, *_ = _NETEM_TOLD.unpack_from(told)
        # Of a packet that is to be doubled and to be lost, one goes on: no copy, and no drop.
        duplicated -= max(0, lost - found.dropped)
        found = replace(found, corrupted=corrupted, duplicated=duplicated)
    if kind == "trace":
        origin_ns, _, _, flags, *_ = _TRACE.unpack_from(attributes(options)[_TRACE_PARMS])
        found = replace(found, origin_ns=origin_ns, once=bool(flags & _TRACE_ONCE))
    return name, found


Read = tuple[dict[str, float], str, str]


def _without_changing(kind: str, options: bytes) -> bytes:
    """Return the options of a queue without what it changes there by itself: zeros instead.

    SFQ has counters among them, adaptive RED the probability that it adapts.
    """
    start, end = _CHANGING.get(kind, (0, 0))
    if kind == "red" and not number_of(options[_RED_FLAGS : _RED_FLAGS + 1]) & _RED_ADAPTIVE:
        return options
    return options[:start] + bytes(len(options[start:end])) + options[end:]


_RED_FLAGS, _RED_ADAPTIVE = 19, 0x4
_CHANGING = {"sfq": (48, 72), "red": (24, 28)}


def _read_tbf(options: bytes) -> Read:
    attrs = attributes(options)
    parms = _TBF.unpack_from(attrs[_TBF_PARMS])
    rate = float(number_of(attrs[_TBF_RATE64]) if _TBF_RATE64 in attrs else parms[5])
    limit, buffer_ticks, peak = parms[12], parms[13], parms[11]
    strange = {k: v.hex() for k, v in attrs.items() if k not in (_TBF_PARMS, _TBF_RATE64)}
    more = {"peak": peak, "overhead": parms[2], "mpu": parms[4],
            "linklayer": parms[1] if parms[1] != _ETHERNET else 0}  # fmt: skip
    extras = " ".join([f"{name} {value}" for name, value in more.items() if value]
                      + [f"{k}={v}" for k, v in strange.items()])  # fmt: skip
    return {
        "rate_bytes_s": rate,
        "burst_bytes": float(round(buffer_ticks * TICK_NS * rate / 1e9)),
        "limit_bytes": float(limit),
    }, extras, ""  # fmt: skip


def _read_netem(options: bytes) -> Read:
    latency, limit, loss, gap, duplicate, jitter = _NETEM.unpack_from(options)
    attrs = attributes(options, _NETEM.size)
    rate, overhead = struct.unpack_from("=Ii", attrs.get(_NETEM_RATE, bytes(8)))
    if _NETEM_RATE64 in attrs:
        rate = number_of(attrs[_NETEM_RATE64])
    delay_ns = number_of(attrs[_NETEM_DELAY64]) if _NETEM_DELAY64 in attrs else latency * TICK_NS
    jitter_ns = number_of(attrs.get(_NETEM_JITTER64, b"")) or jitter * TICK_NS
    corrupt, correlation = struct.unpack_from("=II", attrs.get(_NETEM_CORRUPT, bytes(8)))
    known = {_NETEM_RATE, _NETEM_RATE64, _NETEM_DELAY64, _NETEM_JITTER64, _NETEM_CORRUPT,
             _NETEM_SEED, _NETEM_PAD}  # fmt: skip
    settings = {
        "rate_bytes_s": float(rate),
        "delay_ns": float(delay_ns),
        "limit_packets": float(limit),
        "overhead_bytes": float(overhead),
        "loss_pct": 100.0 * loss / 0xFFFFFFFF,
    }
    drawn_by = {"jitter_ns": float(jitter_ns), "duplicate_pct": 100.0 * duplicate / 0xFFFFFFFF,
                "corrupt_pct": 100.0 * corrupt / 0xFFFFFFFF}  # fmt: skip
    settings |= {name: value for name, value in drawn_by.items() if value}
    model = attributes(attrs.get(_NETEM_LOSS, b""))
    if model.keys() == {_GILBERT_ELLIOTT}:
        known.add(_NETEM_LOSS)
        chances = struct.unpack_from("=4I", model[_GILBERT_ELLIOTT])
        settings |= {
            name: 100.0 * chance / 0xFFFFFFFF for name, chance in zip(BURSTS, chances, strict=True)
        }
    more = {"gap": gap, "corrupt correlation": correlation,
            "cells": number_of(attrs.get(_NETEM_RATE, b"")[8:])}  # fmt: skip
    extras = [f"{name} {value}" for name, value in more.items() if value]
    # What is not switched on stands there as zeros.
    extras += [f"{k}={v.hex()}" for k, v in sorted(attrs.items()) if k not in known and any(v)]
    drawn = attrs[_NETEM_SEED].hex() if _NETEM_SEED in attrs else ""
    return settings, " ".join(extras), drawn


def _read_trace(options: bytes) -> Read:
    parms = _TRACE.unpack_from(attributes(options)[_TRACE_PARMS])
    names = ("limit_bytes", "room_bytes", "", "opportunities", "end_ms", "crc")
    return {n: float(v) for n, v in zip(names, parms[1:], strict=True) if n}, "", ""


_READERS = {"tbf": _read_tbf, "netem": _read_netem, "trace": _read_trace}
