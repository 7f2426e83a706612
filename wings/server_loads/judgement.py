"""Judgement of a load on a server: clients, server, both kernels and the capture have to agree.

Most of it is said twice: by the generator and the client's kernel, by the server's program and its
kernel, by counters and by the capture.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from testbed.capture.flows import Flow, Flows
from testbed.capture.packets import ACK, FIN, RST, SYN
from testbed.kinds.judgement import Judgement
from testbed.lab.link.protocol import WAYS
from testbed.mechanisms.checks import CHECKS
from testbed.model import Trial
from testbed.model.impairments import is_lossy
from testbed.model.observation import Observation
from testbed.proof.check import check, find_problems, say_unshown
from testbed.proof.evidence import GONE, Evidence, LackingError
from testbed.proof.summary import summarise
from wings.server_loads.account import count_segments
from wings.server_loads.conduct import (
    LATE_IN_REAL_TIME_NS,
    LATE_NS,
    SECOND_NS,
    ended_ns,
    ending_of,
    is_refused,
    odd_management,
    odd_patience,
    odd_timers,
    read_answer,
    schedule_ns,
    split_retries,
    version_asked,
)
from wings.server_loads.management import (
    FIRST_TIMEOUT,
    LINEAR,
    USUAL_MS,
    own_sysctls,
    queues_of,
)
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.mechanisms.apply import ACCEPT_LIMIT, OVERLOAD
from wings.server_loads.mechanisms.mechanism import MECHANISMS, settings_of
from wings.server_loads.price_list import price_work
from wings.server_loads.responses import SeenResponse, at_share, read_responses
from wings.server_loads.spec import ServerLoad

HISTOGRAM_SHARE = 0.01
"""How exact a histogram of response times is, and a ledger in slices."""


TIMES_SHARE, TIMES_MS = 0.002, 0.05
"""By how much a response time may differ from its packets': by three digits, and by calls."""
EDGE_NS, EDGE_GAPS = 1_000_000, 20
"""How exactly a capture knows when seconds begin: of drawn arrivals within so many mean gaps."""


@dataclass(frozen=True, slots=True)
class ServedObservation(Observation):
    """What a load on a server leaves.

    ``taken_later`` is how many segments each end's kernel had taken once the link had been read;
    ``counters`` are read before that.  ``sysctls`` are the server's once it was told how to manage
    connections, and ``workers`` the processes of its program.
    """

    served: ServedLoad | None = None
    sysctls: dict[str, str] = field(default_factory=dict)
    workers: int = 0
    taken_later: dict[str, int] = field(default_factory=dict)

    @property
    def measured(self) -> ServedLoad | None:
        """What became of the connections."""
        return self.served


OBSERVATION = ServedObservation


@dataclass(frozen=True, eq=False)
class ServedEvidence(Evidence):
    """Evidence of a load on a server.

    The capture is bounded: where a load had more packets, its connections are those of the
    beginning, and only the counters tell of all.
    """

    @cached_property
    def asked(self) -> ServerLoad:
        """The load that was asked for."""
        return self.trial.condition_as(ServerLoad)

    @cached_property
    def served_load(self) -> ServedLoad:
        """What became of the connections."""
        if not isinstance(self.observed, ServedObservation) or self.observed.served is None:
            raise LackingError("the load did not end")
        return self.observed.served

    @cached_property
    def responses(self) -> list[SeenResponse]:
        """The connections of the capture, and when each was answered."""
        return read_responses(self.flows, self.asked.server.response_bytes)

    @property
    def taken_later(self) -> Mapping[str, int]:
        """How many segments each kernel had taken once the link had been read."""
        return self.observed.taken_later if isinstance(self.observed, ServedObservation) else {}

    @cached_property
    def due_ns(self) -> Sequence[int]:
        """When connections of an open loop were to start, in ns from the beginning."""
        arrivals = self.asked.arrivals
        return (*schedule_ns(arrivals, self.trial.seed),) if arrivals.loop == "open" else ()

    @cached_property
    def first_and_retries(self) -> tuple[list[Flow], list[Flow]]:
        """The captured connections of an open loop that started when one was due, and others."""
        return split_retries(self.flows.flows, self.due_ns, self.late_ns)

    @property
    def late_ns(self) -> int:
        """By how much the generator may be late."""
        return LATE_NS if self.virtual_time else LATE_IN_REAL_TIME_NS

    @property
    def overloaded(self) -> bool:
        """The server may leave connections without an answer."""
        return True

    @property
    def own_client(self) -> bool:
        """All connections are the generator's."""
        return True


def judge(trial: Trial, observed: ServedObservation, out: Path) -> Judgement:
    """Return what both programs told of the load, if it came to its end, and what is proven.

    Raises:
        OSError, ValueError, LookupError: the capture cannot be read.
    """
    seen = ServedEvidence(trial, observed, out, bounded=True)
    if not all(map(seen.has, ("counters", "served_load", "capture"))):
        return Judgement(observed.served, None)
    problems = (*find_problems(seen, (*CHECKS, *OWN_CHECKS)), *observed.problems)
    acks = count_handshake_acks(seen.flows) if seen.whole_capture else None
    return Judgement(observed.served, replace(summarise(seen, problems), handshake_acks=acks))


def count_handshake_acks(flows: Flows) -> int:
    """Return how many ACKs of a SYN-ACK clients sent: without data, and of nothing but it."""
    return sum(
        by_client
        and packet.flags & (SYN | FIN | RST | ACK) == ACK
        and not packet.payload_bytes
        and packet.ack == (flow.synack.seq + 1) % 2**32
        for flow in flows.flows
        if flow.synack is not None
        for by_client, packet in flow.packets
    )


@check("generator", "served_load", "counters")
def check_generator(seen: ServedEvidence) -> Iterator[str]:
    """The generator was not itself the limit, and its counts are its kernel's."""
    served, client = seen.served_load, seen.client_counters
    if served.limits:
        yield f"the generator was itself the limit: it lacked {', '.join(served.limits)}"
    ended = served.answered + served.refused + served.reset + served.timed_out + served.broken
    if ended != served.started:
        yield f"{served.started} connections started, and {ended} ended"
    opened, least = client.get("TcpActiveOpens", 0), served.all_started + served.retries
    if opened < least or (not served.retries and opened != least):
        yield f"the clients' kernel opened {opened} connections, the generator {least}"


@check("server", "served_load", "counters")
def check_server(seen: ServedEvidence) -> Iterator[str]:
    """The server's program, its kernel and the clients count the same connections."""
    load, served, server = seen.asked, seen.served_load, seen.counters["server"]
    accepted, opened = served.server.get("accepted", 0), server.get("TcpPassiveOpens", 0)
    # The queue holds one more than its backlog (sk_acceptq_is_full).
    queues = load.server.workers * (load.server.listen_backlog + 1)
    if not 0 <= opened - accepted <= queues:
        yield f"the server accepted {accepted} connections, its kernel opened {opened}"
    responses = served.server.get("responses", 0)
    if responses < served.all_answered:
        yield f"the server sent {responses} responses, clients had {served.all_answered}"
    workers = seen.observed.workers if isinstance(seen.observed, ServedObservation) else 0
    if workers != load.server.workers:
        yield f"the server had {workers} workers, asked were {load.server.workers}"
    lacked = served.server.get("lacked", 0)
    if lacked:
        yield f"the server lacked descriptors or memory for {lacked} connections"


@check("segments delivered", "served_load", "counters", "lab")
def check_link(seen: ServedEvidence) -> Iterator[str]:
    """Each kernel took the segments that the link delivered to it.

    The counters of both ends were read before the link's, and ``taken_later`` is what had been
    taken after that, where that was counted: in real time a segment may be sent again between two
    readings.  Some the server's management lets no further than its device.
    """
    traffic, counters, later = seen.counted, seen.counters, seen.taken_later
    withheld = seen.served_load.management.get("withheld", 0)
    for way, end, less in (("up", "server", withheld), ("down", "client", 0)):
        delivered, taken = traffic[f"{way}.delivered"], counters[end]["TcpInSegs"]
        most = later.get(end, taken)
        if not taken <= delivered - less <= most:
            but = f" but for {less}" * bool(less)
            yield (
                f"the link delivered {delivered} packets{but} to the {end}, its kernel took {taken}"
                + f" to {most}" * (most != taken)
            )


@check("ledger", "served_load", "counters")
def check_ledger(seen: ServedEvidence) -> Iterator[str]:
    """What the server paid is what happened, by the price list."""
    served, traffic = seen.served_load, seen.counted
    client, server = seen.client_counters, seen.counters["server"]
    prices, counts = served.prices_ns, served.server
    if not any(prices.values()):
        return
    syns, segments = counts["syns"], counts["segments"]
    # The ledger ends with the server: what its connections send then is in no ledger.
    least, most = counts["settled_segments"], count_segments(server)
    if not least <= syns + segments <= most:
        yield (
            f"the ledger has {syns + segments} segments, the server's kernel {least} before it "
            f"ended and {most} after it"
        )
    sent = client.get("TcpActiveOpens", 0) + client.get("TcpExtTCPSynRetrans", 0)
    # Some of many that are sent again at once may find no room in the clients' own queues.
    failed = client.get("TcpExtTCPRetransFail", 0)
    if (
        not sent - failed <= syns <= sent
        and not traffic.get("up.dropped")
        and not traffic.get("up.lost")
    ):
        yield f"the ledger has {syns} SYNs, the clients' kernel sent {sent}"
    if counts["unseen"]:
        yield f"{counts['unseen']} segments are not in the ledger"
    closed = sum(counts[name] for name in ("closed", "client_closed", "resets", "invalid"))
    owed = (
        syns * prices["syn"]
        + segments * prices["segment"]
        + counts["accepted"] * prices["accept"]
        + counts["requests"] * prices["request"]
        + closed * prices["close"]
    )
    if owed != counts["owed_ns"]:
        yield f"the ledger has {counts['owed_ns']} ns, the price list says {owed} ns"


@check("arrivals", "served_load")
def check_asked(seen: ServedEvidence) -> Iterator[str]:
    """The load was the one asked for, and its numbers do not contradict each other."""
    load, served = seen.asked, seen.served_load
    knobs = seen.lab.knobs if seen.has("lab") else {}
    arrivals = load.arrivals
    if served.seconds != arrivals.duration_s:
        yield f"{served.seconds} s were measured, asked were {arrivals.duration_s} s"
    if served.replies_per_s * served.seconds > served.all_answered + 0.5:
        yield (
            f"{served.replies_per_s:g} responses a second for {served.seconds} s are more than the "
            f"{served.all_answered} that clients had"
        )
    unanswered = served.started - served.answered
    failed_pct = 100 * unanswered / served.started if served.started else 0.0
    if not math.isclose(served.failed_pct, failed_pct, abs_tol=1e-9):
        yield f"{served.failed_pct:g} % failed, but {unanswered} of {served.started} connections"
    least_ms = load.link.rtt_ms * (1 if load.tcp.tfo else 2)
    median_ms = served.response_p50_ms
    if median_ms is not None and median_ms < least_ms * (1 - HISTOGRAM_SHARE):
        yield f"half of the responses came within {median_ms:g} ms, which {least_ms:g} ms preclude"
    for name, value in own_sysctls(arrivals).items():
        if knobs.get(f"client.{name}") != value:
            yield f"client: {name} was read back as {knobs.get(f'client.{name}')!r}, not {value!r}"


@check("responses", "served_load", "virtual_time", "whole_capture", "responses")
def check_responses(seen: ServedEvidence) -> Iterator[str]:
    """Connections, answers, throughput and response times are those of the packets.

    One that is tried again is several in the capture: then only answers are held against it.
    """
    served, arrivals, responses = seen.served_load, seen.asked.arrivals, seen.responses
    ended = [each.ended_ns for each in responses if each.ended_ns is not None]
    if len(ended) != served.all_answered:
        yield f"{served.all_answered} connections were answered, by the capture {len(ended)}"
    if not responses:
        return
    drawn_ns = round(EDGE_GAPS * 1e9 / arrivals.rate_per_s)
    slack_ns = drawn_ns if arrivals.spacing == "poisson" else EDGE_NS
    since_ns = responses[0].began_ns + arrivals.warm_up_s * 10**9
    until_ns = since_ns + arrivals.duration_s * 10**9
    most, least = (
        sum(since_ns - more <= at_ns <= until_ns + more for at_ns in ended)
        for more in (slack_ns, -slack_ns)
    )
    if not least - 0.5 <= served.replies_per_s * served.seconds <= most + 0.5:
        yield (
            f"{served.replies_per_s:g} responses a second are told of, by the capture they are "
            f"{least / arrivals.duration_s:g} to {most / arrivals.duration_s:g}"
        )
    if arrivals.retries_refused:
        return
    if len(responses) != served.all_started:
        yield f"{served.all_started} connections started, by the capture {len(responses)}"
        return
    measured = responses[served.all_started - served.started :]
    times_ms = sorted(
        (each.ended_ns - each.began_ns) / 1e6 for each in measured if each.ended_ns is not None
    )
    if len(times_ms) != served.answered:
        yield f"{served.answered} of the measured were answered, by the capture {len(times_ms)}"
        return
    for name, told_ms, found_ms in (
        ("mean", served.response_mean_ms, sum(times_ms) / max(1, len(times_ms))),
        ("median", served.response_p50_ms, at_share(times_ms, 0.5) if times_ms else 0.0),
        ("p99", served.response_p99_ms, at_share(times_ms, 0.99) if times_ms else 0.0),
    ):
        within = math.isclose(told_ms or 0.0, found_ms, rel_tol=TIMES_SHARE, abs_tol=TIMES_MS)
        if not within:
            yield f"the {name} response took {told_ms} ms, by the capture {found_ms:.3f}"


@check("prices", "served_load")
def check_prices(seen: ServedEvidence) -> Iterator[str]:
    """The price list that was asked for was charged, and no other."""
    load, served = seen.asked, seen.served_load
    free = not seen.virtual_time or load.server.program == "nginx"
    asked = {} if free else price_work(load.server)
    if served.prices_ns != asked:
        yield f"the server paid {served.prices_ns} ns, asked was {asked}"
    busy = served.server_cpu_pct
    if busy is not None and not 0 <= busy <= 100 * (1 + HISTOGRAM_SHARE):
        yield f"the server's processor was busy for {busy:g} % of the time"
    if any(asked.values()) and busy is None:
        yield "the ledger does not say how busy the server's processor was"


@check("connection management", "served_load", "counters")
def check_mechanism(seen: ServedEvidence) -> Iterator[str]:
    """Clients saw what the mechanism does, and nothing that it never does.

    Without room a connection is refused at its SYN with ``rst-syn``, reset at the end of its
    handshake with ``abort`` and ``no-syn-drop``, and else dropped in silence.
    """
    load, served, server = seen.asked, seen.served_load, seen.counters["server"]
    words = load.server.mechanism.split()
    refuses, resets = "rst-syn" in words, "abort" in words or "no-syn-drop" in words
    if served.refused + served.retries and not refuses:
        yield f"{served.refused} connections were refused, which {load.server.mechanism} never does"
    if served.reset and not resets:
        yield f"{served.reset} connections were reset, which {load.server.mechanism} never does"
    full = server.get("TcpExtListenOverflows", 0) + server.get("TcpExtTCPReqQFullDrop", 0)
    if refuses and full and not server.get("TcpOutRsts", 0):
        yield f"the server's queues were full {full} times, and it sent no reset"


@check("starts", "served_load", "flows")
def check_starts(seen: ServedEvidence) -> Iterator[str]:
    """Connections started when rate, spacing and seed say, or when another one had ended.

    In real time starts are late by what the machine does beside, so that they are counted alone.
    """
    arrivals, flows = seen.asked.arrivals, seen.flows.flows
    if arrivals.loop == "closed":
        yield from _check_closed(seen)
        return
    due = seen.due_ns
    if seen.served_load.all_started != len(due):
        yield f"{seen.served_load.all_started} connections started, due were {len(due)}"
    if not seen.virtual_time:
        return
    first, others = seen.first_and_retries
    captured = len(due)
    if not seen.whole_capture:
        captured = bisect_left(due, flows[-1].syn.at_ns - flows[0].syn.at_ns + due[0])
    measured = len(due) - bisect_left(due, arrivals.warm_up_s * SECOND_NS)
    if seen.served_load.started != measured:
        yield f"{seen.served_load.started} connections started when measured, due were {measured}"
    missing = captured - len(first)
    if missing:
        yield f"{missing} of {captured} connections did not start when they were due"
    if others and not arrivals.retries_refused:
        yield f"{len(others)} of {len(flows)} connections started when none was due"


def _check_closed(seen: ServedEvidence) -> Iterator[str]:
    """Each client starts a connection at once, and the next one when that has ended."""
    arrivals, flows = seen.asked.arrivals, seen.flows.flows
    ends = sorted(at_ns for flow in flows if (at_ns := ended_ns(flow)) is not None)
    starts = [flow.syn.at_ns for flow in flows]
    first = bisect_left(starts, ends[0]) if ends else len(starts)
    if seen.asked.arrivals.retries_refused == 0 and first != arrivals.clients:
        yield f"{first} clients started a connection before one had ended, not {arrivals.clients}"
    until_ns = (arrivals.warm_up_s + arrivals.duration_s) * SECOND_NS
    if not seen.whole_capture:
        yield from [say_unshown("arrivals.warm_up_s", arrivals.warm_up_s)] * (
            arrivals.warm_up_s != type(arrivals)().warm_up_s
        )
    elif starts:
        lasted_ns = starts[-1] - starts[0]
        after = bisect_left(ends, starts[-1] + seen.late_ns)
        idle_ns = ends[after] - starts[0] if after < len(ends) else until_ns
        if lasted_ns > until_ns + seen.late_ns or idle_ns < until_ns - seen.late_ns:
            yield (
                f"clients started connections for {lasted_ns / 1e9:.3f} s, asked were "
                f"{until_ns / 1e9:g} s"
            )


@check("exchanges", "served_load", "flows", source="RFC 9112")
def check_exchanges(seen: ServedEvidence) -> Iterator[str]:
    """Requests, responses and the ends of connections are those asked for."""
    load, flows = seen.asked, seen.flows.flows
    answers = [read_answer(flow) for flow in flows]
    size = load.server.response_bytes
    versions = Counter(filter(None, map(version_asked, flows)))
    ends = Counter(
        ending
        for flow, (told, came) in zip(flows, answers, strict=True)
        if told is not None and came >= told and (ending := ending_of(flow)) is not None
    )
    for what, asked, found in (
        ("http_version", load.arrivals.http_version, versions),
        ("ending", load.arrivals.ending, ends),
    ):
        other = found.total() - found[asked]
        if other:
            yield f"{what} = {asked}, but {other} of {found.total()} connections had another"
    other = sum(told is not None and (told != size or came > size) for told, came in answers)
    if other:
        yield f"response_bytes = {size}, but {other} responses had another length"
    whole = sum(told == came == size for told, came in answers)
    if seen.whole_capture and whole < seen.served_load.all_answered:
        yield f"{whole} whole responses came, clients had {seen.served_load.all_answered}"


@check("SYN timers", "served_load", "flows", "lab", source="RFC 6298, ip-sysctl")
def check_timers(seen: ServedEvidence) -> Iterator[str]:
    """SYNs were sent again when their kernel is to, and connections given up as asked."""
    arrivals, knobs, flows = seen.asked.arrivals, seen.lab.knobs, seen.flows.flows
    odd = odd_timers(flows, arrivals)
    if odd:
        yield f"{odd} of {len(flows)} connections sent a SYN again at another time than asked"
    ms, linear = round(arrivals.syn_timeout_s * 1000), arrivals.syn_linear_timeouts
    told = {end: knobs.get(f"{end}.{FIRST_TIMEOUT}", str(USUAL_MS)) for end in seen.counters}
    for end, text in told.items():
        if text != str(ms):
            yield f"{end}: a SYN's first timer was read back as {text} ms, asked was {ms} ms"
    # A kernel before 6.5 has none, and nothing to read back.
    text = knobs.get(f"client.{LINEAR}", "4" if linear else "0")
    if text != str(linear):
        yield f"client: {LINEAR} was read back as {text}, asked was {linear}"
    late = [*odd_patience(flows, arrivals, seen.asked.server.response_bytes)]
    if arrivals.retries_refused or is_lossy(seen.link) or not seen.whole_capture:
        late[1] = 0  # a retry has the patience of its first attempt
    for how, number in zip(("longer", "less"), late, strict=True):
        if number:
            yield f"clients kept {number} connections for {how} than {arrivals.patience_s:g} s"


@check("retries", "served_load", "flows")
def check_retries(seen: ServedEvidence) -> Iterator[str]:
    """Who was refused connected again, at once and as often as asked."""
    asked, served = seen.asked.arrivals.retries_refused, seen.served_load
    refused, retried, opened = served.refused, served.retries, served.refused + served.reset
    if seen.due_ns and seen.whole_capture and seen.virtual_time:
        first, others = seen.first_and_retries
        retried, opened = len(others), sum(map(is_refused, first))
        refused = opened + sum(map(is_refused, others)) - retried
    allowed = 0 if seen.virtual_time else len(seen.due_ns) * HISTOGRAM_SHARE
    if refused * asked > retried + allowed or (seen.due_ns and retried > opened * asked + allowed):
        yield (
            f"retries_refused = {asked}, but {refused} connections were refused for good, and "
            f"clients connected again {retried} times"
        )


@check("queues and mechanism", "served_load", "flows", "counters")
def check_management(seen: ServedEvidence) -> Iterator[str]:
    """The server's kernel has the queues and the mechanism asked for, and does what they say."""
    server = seen.asked.server
    if isinstance(seen.observed, ServedObservation) and seen.observed.sysctls:
        told = seen.observed.sysctls
        settings = settings_of(MECHANISMS[server.mechanism], queues_of(server))
        own = {OVERLOAD: str(int(settings.mode)), ACCEPT_LIMIT: str(settings.limit)}
        if OVERLOAD not in told:  # a BPF program does it
            own = {}
        for name, value in (settings.sysctls | own).items():
            if told.get(name) != value:
                yield f"server: {name} is {told.get(name)!r}, the asked mechanism has {value!r}"
    else:
        yield "the server's kernel was not asked how it manages connections"
    most = seen.served_load.server.get("queue_most", 0)
    if most > server.listen_backlog + 1:
        yield f"{most} connections waited for accept(), listen_backlog = {server.listen_backlog}"
    lost = any(seen.counted.get(f"{way}.{how}") for way in WAYS for how in GONE)
    if not lost and not is_lossy(seen.link):
        yield from odd_management(seen.flows.flows, server, seen.link.rtt_ms * 1e6)


OWN_CHECKS = (
    check_generator,
    check_server,
    check_link,
    check_ledger,
    check_mechanism,
    check_management,
    check_asked,
    check_responses,
    check_prices,
    check_starts,
    check_exchanges,
    check_timers,
    check_retries,
)
"""The checks of what a load on a server alone leaves."""
