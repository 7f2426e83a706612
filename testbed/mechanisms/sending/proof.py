"""Silence of servers: none waited while it had bytes to send and room to send them in.

Both ends' captures say when a request came, what was acknowledged, and what room windows left, so
whatever else holds a response back shows: a rate limit, a small buffer, a stopped process, a think
time that nobody asked for.  It is the server's own capture that counts: no link lies before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.mechanisms.sending import quic, tcp
from testbed.mechanisms.sending.sender import NEAR_NS, Silence
from testbed.proof.check import check, say_unshown
from testbed.proof.draws import busy_ns
from testbed.proof.evidence import Evidence
from testbed.server.channels import waits_ms
from testbed.server.think import silence_s, think_of

KNOWN = ("cubic", "reno")
"""Congestion controls whose window only losses shrink, in kernels of ours with their settings."""
TIMER_MS = 1.0
"""The grain of nginx's timers, by which it thinks."""
OWN_PACE_ROUNDS = 2
"""For so many round trips a sender may be silent whose window is not known: one that paces, a
kernel of one's own, one whose settings were changed."""


@check(
    *("sending", "virtual_time", "load", "condition", "at_server", "undamaged", "transits"),
    source="RFC 5681",
)
def check_sending(seen: Evidence) -> Iterator[str]:
    """No server was silent while it had bytes to send and room for them, but for its think time.

    What was recorded with times of its own, as messages of a WebSocket, waits no longer than then.
    """
    of_tcp = tcp.find_silences(seen.flows_at_server, seen.tcp.initcwnd_segments)
    late = [each for each in of_tcp if each.ms > silence_ms(seen, over_quic=False)]
    of_quic = quic.find_silences(seen.quic, seen.transits, seen.capture.packets)
    late += [each for each in of_quic if each.ms > silence_ms(seen, over_quic=True)]
    if seen.condition.push_times == "at-once" and not any(_recorded_waits(seen)):
        yield say_unshown("push_times", "at-once")
    pushed_ms = _longest_waits(seen) if late else {}
    late = [each for each in late if each.ms > _pushed_ms(each, pushed_ms)]
    if late:
        worst = max(late, key=lambda each: each.ms)
        yield (
            f"servers were silent {len(late)} times with bytes to send and room for them, the one "
            f"of {worst.connection} for {worst.ms:.3f} ms, when {worst.why}"
        )


def _recorded_waits(seen: Evidence) -> Iterator[float]:
    for entry in seen.archive.entries if seen.has("archive") else ():
        yield from waits_ms(entry)


def _longest_waits(seen: Evidence) -> dict[str, float]:
    """Return the longest wait that was recorded of each server's address."""
    if not seen.has("archive") or seen.condition.push_times == "at-once":
        return {}
    longest: dict[str, float] = {}
    for entry in seen.archive.entries:
        for wait_ms in waits_ms(entry):
            longest[entry.host] = max(wait_ms + 2 * TIMER_MS, longest.get(entry.host, 0.0))
    return {address: longest.get(host, 0.0) for address, host in seen.hosts.items()}


def _pushed_ms(silence: Silence, longest_ms: Mapping[str, float]) -> float:
    address = silence.connection.rpartition(" to ")[2].rpartition(":")[0].strip("[]")
    return longest_ms.get(address, 0.0)


def silence_ms(seen: Evidence, *, over_quic: bool) -> float:
    """Return for how long a server may be silent: its think time, its own pace, as recorded."""
    failures = seen.archive.failures if seen.has("archive") else ()
    recorded_s = max((silence_s(e) or 0.0 for e in failures if e.fails == "silent"), default=0.0)
    think = think_of(seen.condition, seen.trial.seed, lambda: seen.archive)
    think_ms = 0.0 if think is None else think.longest_ms
    known = is_ours(seen) and seen.tcp.congestion_control in KNOWN
    paced = seen.condition.web_server == "aioquic" if over_quic else not known
    pace_ms = OWN_PACE_ROUNDS * seen.link.rtt_ms if paced else 0.0
    pace_ms += recorded_s * 1e3
    return (NEAR_NS + busy_ns(seen)) / 1e6 + pace_ms + (think_ms + TIMER_MS if think_ms else 0.0)


def is_ours(seen: Evidence) -> bool:
    """Whether TCP is that of a kernel of ours, with its settings."""
    plain = not seen.tcp.sysctl and not seen.tcp.route
    return plain and seen.trial.kernel_version[:1].isdigit()
