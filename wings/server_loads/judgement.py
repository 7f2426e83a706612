"""Judgement of a load on a server: clients, server, both kernels and the capture have to agree.

Most of it is said twice: by the generator and the client's kernel, by the server's program and its
kernel, by counters and by the capture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from testbed.capture.flows import Flows
from testbed.capture.packets import ACK, FIN, RST, SYN
from testbed.kinds.judgement import Judgement
from testbed.mechanisms.checks import CHECKS
from testbed.model import Trial
from testbed.model.observation import Observation
from testbed.proof.check import check, find_problems
from testbed.proof.evidence import Evidence, LackingError
from testbed.proof.summary import summarise
from wings.server_loads.account import count_segments
from wings.server_loads.management import own_sysctls
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.price_list import price_work
from wings.server_loads.responses import SeenResponse, at_share, read_responses
from wings.server_loads.spec import ServerLoad

SIGMAS = 6.0
"""How far a Poisson process may be from its mean."""
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
    ``counters`` are read before that.
    """

    served: ServedLoad | None = None
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
    if arrivals.loop == "open":
        due = arrivals.rate_per_s * arrivals.duration_s
        most_off = 1.0 if arrivals.spacing == "fixed" else 1 + SIGMAS * math.sqrt(due)
        if abs(served.started - due) > most_off:
            yield f"{served.started} connections started, asked were {due}"
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


OWN_CHECKS = (
    check_generator,
    check_server,
    check_link,
    check_ledger,
    check_mechanism,
    check_asked,
    check_responses,
    check_prices,
)
"""The checks of what a load on a server alone leaves."""
