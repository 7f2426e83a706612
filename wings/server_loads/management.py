"""Connection management by a server: its mechanism and queues, by counters and by packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.capture.flows import Flow
from testbed.capture.packets import FIN, RST, SYN
from testbed.model.impairments import is_lossy
from testbed.proof.check import check
from wings.server_loads.conduct import is_answered, syns
from wings.server_loads.evidence import ServedEvidence
from wings.server_loads.mechanisms.mechanism import OVERLOAD, settings_of
from wings.server_loads.spec import ServerSpec


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


@check("queues and mechanism", "served_load", "flows", "counters")
def check_management(seen: ServedEvidence) -> Iterator[str]:
    """The server's kernel has the queues and the mechanism asked for, and does what they say."""
    server, told = seen.asked.server, seen.observed.sysctls
    if not told:
        yield "the server's kernel was not asked how it manages connections"
    else:
        settings = settings_of(server)
        # Without a sysctl for it a BPF program does it.
        asked = settings.patched if OVERLOAD in told else settings.sysctls
        for name, value in asked.items():
            if told.get(name) != value:
                yield f"server: {name} is {told.get(name)!r}, the asked mechanism has {value!r}"
    most = seen.served_load.server.get("queue_most", 0)
    if most > server.listen_backlog + 1:
        yield f"{most} connections waited for accept(), listen_backlog = {server.listen_backlog}"
    if not seen.lost and not is_lossy(seen.link):
        yield from odd_management(seen.flows.flows, server, seen.link.rtt_ms * 1e6)


def odd_management(flows: Sequence[Flow], server: ServerSpec, rtt_ns: float) -> Iterator[str]:
    """Yield what a server did that its mechanism never does, where nothing was lost."""
    words = server.mechanism.split()
    again = sum(_is_acked_again(flow, rtt_ns) for flow in flows)
    if again and words[0] != "default":
        yield f"{again} ACKs of handshakes were dropped in silence, not so by {server.mechanism}"
    silent = sum(len(syns(flow)) > 1 and not is_answered(flow) for flow in flows)
    if silent and ("rst-syn" in words or server.mechanism == "no-syn-drop"):
        yield f"{silent} SYNs were dropped in silence, which {server.mechanism} never does"
    polite = sum(_is_answered_by_fin(flow) for flow in flows)
    if polite and "rst-fin" in words:
        yield f"{polite} FINs were answered by one, which {server.mechanism} never does"


def _is_acked_again(flow: Flow, rtt_ns: float) -> bool:
    """Whether a SYN-ACK came again when the ACK of the one before had been there."""
    acked_ns = None
    for by_client, packet in flow.packets:
        if by_client and not packet.flags & (SYN | RST) and acked_ns is None:
            acked_ns = packet.at_ns
        if not by_client and packet.flags & SYN and acked_ns is not None:
            return packet.at_ns - acked_ns > rtt_ns
    return False


def _is_answered_by_fin(flow: Flow) -> bool:
    """Whether the server answered the client's FIN by its own."""
    gone = False
    for by_client, packet in flow.packets:
        if packet.flags & (FIN | RST):
            if not by_client:
                return gone and bool(packet.flags & FIN)
            gone = True
    return False
