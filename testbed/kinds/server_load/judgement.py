"""Judgement of a load on a server: clients, server, both kernels and the wire have to agree.

Most of it is said twice: by the generator and the client's kernel, by the server's program and its
kernel, by counters and by the capture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.kinds.server_load.account import count_segments
from testbed.kinds.server_load.management import own_sysctls
from testbed.kinds.server_load.measurement import ServedLoad
from testbed.kinds.server_load.price_list import price_work
from testbed.kinds.server_load.spec import ServerLoad
from testbed.lab.topology import CLIENT_ENDS
from testbed.model import CAPTURE_FILE, Proof, Trial, in_real_time
from testbed.wire.both_ways import check_both_ways, check_whole
from testbed.wire.capture import CAPTURED_MOST
from testbed.wire.flows import Flows, read_flows
from testbed.wire.line import check_line
from testbed.wire.packets import ACK, FIN, RST, SYN, read_capture
from testbed.wire.proof import prove as prove_flows

Counters = Mapping[str, int]
SIGMAS = 6.0
"""How far a Poisson process may be from its mean."""
HISTOGRAM_SHARE = 0.01
"""How exact a histogram of response times is, and a ledger in slices."""


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


def judge(trial: Trial, observed: ServedObservation, out: Path) -> Judgement:
    """Return what both programs told of the load, if it came to its end, and what is proven.

    The capture is bounded: where a load had more packets, its connections are those of the
    beginning, and only the counters tell of all.

    Raises:
        OSError, ValueError, LookupError: the capture cannot be read.
    """
    return Judgement(observed.served, _prove(trial, observed, out))


def _prove(trial: Trial, observed: ServedObservation, out: Path) -> Proof | None:
    pcap, load, served = out / CAPTURE_FILE, trial.condition_as(ServerLoad), observed.served
    if observed.counters is None or served is None or not pcap.exists():
        return None
    client, server = observed.counters["client"], observed.counters["server"]
    capture = read_capture(pcap)
    flows = read_flows(capture, CLIENT_ENDS)
    whole = len(capture.packets) < CAPTURED_MOST
    proof = prove_flows(flows, observed.counters, load.tcp, whole=whole, overload=True)
    traffic = observed.lab.traffic if observed.lab is not None else {}
    problems = (
        *proof.problems,
        *observed.problems,
        *check_whole(capture),
        *(
            check_line(flows, load.link, (), observed.running_traces(load.link))
            if not in_real_time(trial.kernel)
            else ()
        ),
        *(check_both_ways(flows, client) if whole else ()),
        *check_generator(served, client),
        *check_server(served, load, server),
        *check_link(
            traffic, observed.counters, observed.taken_later, served.management.get("withheld", 0)
        ),
        *check_ledger(served, client, server, traffic),
        *check_mechanism(load, served, server),
        *check_asked(load, served, observed.lab.knobs if observed.lab is not None else {}),
        *check_prices(load, served, real_time=in_real_time(trial.kernel)),
    )
    acks = count_handshake_acks(flows) if whole else None
    return replace(proof, problems=problems, handshake_acks=acks)


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


def check_generator(served: ServedLoad, client: Counters) -> Iterator[str]:
    """Yield a sentence where the generator was the limit, or its counts do not add up."""
    if served.limits:
        yield f"the generator was itself the limit: it lacked {', '.join(served.limits)}"
    ended = served.answered + served.refused + served.reset + served.timed_out + served.broken
    if ended != served.started:
        yield f"{served.started} connections started, and {ended} ended"
    opened, least = client.get("TcpActiveOpens", 0), served.all_started + served.retries
    if opened < least or (not served.retries and opened != least):
        yield f"the clients' kernel opened {opened} connections, the generator {least}"


def check_server(served: ServedLoad, load: ServerLoad, server: Counters) -> Iterator[str]:
    """Yield a sentence where the server's program and its kernel, or the clients, disagree."""
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


def check_link(
    traffic: Counters, counters: Mapping[str, Counters], later: Counters, withheld: int
) -> Iterator[str]:
    """Yield a sentence where a kernel took another number of segments than the link delivered.

    ``counters`` of both ends were read before the link's, and ``later`` is what had been taken
    after that, where that was counted: in real time a segment may be sent again between two
    readings.  ``withheld`` are those that the server's management let no further than its device.
    """
    for way, end, less in (("up", "server", withheld), ("down", "client", 0)):
        delivered, taken = traffic[f"{way}.delivered"], counters[end]["TcpInSegs"]
        most = later.get(end, taken)
        if not taken <= delivered - less <= most:
            but = f" but for {less}" * bool(less)
            yield (
                f"the link delivered {delivered} packets{but} to the {end}, its kernel took {taken}"
                + f" to {most}" * (most != taken)
            )


def check_ledger(
    served: ServedLoad, client: Counters, server: Counters, traffic: Counters
) -> Iterator[str]:
    """Yield a sentence where what the server paid is not what happened, by the price list."""
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


def check_asked(load: ServerLoad, served: ServedLoad, knobs: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence where another load was performed than asked, or numbers contradict it."""
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


def check_prices(load: ServerLoad, served: ServedLoad, *, real_time: bool) -> Iterator[str]:
    """Yield a sentence where another price list was charged than asked, or none was."""
    free = real_time or load.server.program == "nginx"
    asked = {} if free else price_work(load.server)
    if served.prices_ns != asked:
        yield f"the server paid {served.prices_ns} ns, asked was {asked}"
    busy = served.server_cpu_pct
    if busy is not None and not 0 <= busy <= 100 * (1 + HISTOGRAM_SHARE):
        yield f"the server's processor was busy for {busy:g} % of the time"
    if any(asked.values()) and busy is None:
        yield "the ledger does not say how busy the server's processor was"


def check_mechanism(load: ServerLoad, served: ServedLoad, server: Counters) -> Iterator[str]:
    """Yield a sentence where clients saw what the mechanism never does, or not what it does.

    Without room a connection is refused at its SYN with ``rst-syn``, reset at the end of its
    handshake with ``abort`` and ``no-syn-drop``, and else dropped in silence.
    """
    words = load.server.mechanism.split()
    refuses, resets = "rst-syn" in words, "abort" in words or "no-syn-drop" in words
    if served.refused + served.retries and not refuses:
        yield f"{served.refused} connections were refused, which {load.server.mechanism} never does"
    if served.reset and not resets:
        yield f"{served.reset} connections were reset, which {load.server.mechanism} never does"
    full = server.get("TcpExtListenOverflows", 0) + server.get("TcpExtTCPReqQFullDrop", 0)
    if refuses and full and not server.get("TcpOutRsts", 0):
        yield f"the server's queues were full {full} times, and it sent no reset"
