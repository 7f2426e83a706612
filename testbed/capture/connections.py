"""Openings of connections in a capture: SYN, what it carries, and what its SYN-ACK acknowledges.

A TLS client's first request is its hello, and a SYN may hold the beginning of it only: what rode in
the SYN is counted, the rest follows a round trip later (RFC 7413 section 6.3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile, takewhile

from testbed.capture.flows import Flow, payloads
from testbed.capture.packets import ACK, FAST_OPEN, RST, SYN, behind, find_option
from testbed.capture.tls import HANDSHAKE_START, record_bytes

REQUEST_STARTS = (b"GET ", b"HEAD ", b"POST ", HANDSHAKE_START)
RECEIVE_BYTES, MOST_RECEIVE_BYTES = 131_072, 6_291_456
"""Of a socket at first, and in the end: the lab's tcp_rmem (tcp(7))."""
WINDOW_SHIFT = MOST_RECEIVE_BYTES.bit_length() - 16
"""By how much the largest window is scaled to fit into 16 bits."""
TIMESTAMP_BYTES = 12
_WIDEST = 65_535
"""The window of a SYN is not scaled (RFC 7323 section 2.2)."""


def opening_window(segment_bytes: int) -> int:
    """Return the window of a SYN by the lab's receive buffers, for segments with so much data.

    Half of the buffer is for data, in whole segments (tcp_select_initial_window in
    net/ipv4/tcp_output.c).  Of segments without data it is 0.
    """
    if segment_bytes <= 0:
        return 0
    return min(RECEIVE_BYTES // 2 // segment_bytes * segment_bytes, _WIDEST)


@dataclass(frozen=True, slots=True)
class Connection:
    """What the capture shows of one TCP connection that the client opened.

    ``hello`` counts the bytes of the client's first TLS record, ``syn_hello`` those of them that
    were in the SYN; both are 0 on a connection without TLS.  ``sent_again`` says that the SYN went
    again before a SYN-ACK came, and ``given_up`` that the client had
    closed it before its SYN-ACK came: no socket was left to take that.
    """

    server: str
    syn_time_ns: int
    sequence: int
    syns: int
    sent_again: bool
    payload: int
    carries_request: bool
    hello: int
    syn_hello: int
    fastopen_option: bool
    cookie_request: bool
    synack_time_ns: int | None
    given_up: bool
    syn_data_acked: bool
    new_cookie: bool
    retransmits: int

    @property
    def answered(self) -> bool:
        """Whether the first SYN was answered: one that is sent again carries no data."""
        return self.synack_time_ns is not None and self.syns == 1


def read_connection(flow: Flow) -> Connection:
    """Read the opening of ``flow``, its first TLS record, and how much was sent again."""
    syn, synack = flow.syn, flow.synack
    cookie = find_option(syn, FAST_OPEN)
    acked = 0 if synack is None else behind(synack.ack, syn.seq + 1)
    syn_hello = record_bytes(syn.payload)
    sent_first = payloads(flow, by_client=True)
    begins = (record_bytes(packet.payload) for offset, packet in sent_first if not offset)
    before_answer = takewhile(lambda sent: sent[1] is not synack, flow.packets)
    sent = [
        (by_client, packet.seq, packet.payload_bytes)
        for by_client, packet in flow.packets
        if packet.payload_bytes and not packet.flags & SYN
    ]
    return Connection(
        server=syn.receiver,
        syn_time_ns=syn.at_ns,
        sequence=syn.seq,
        syns=flow.syns,
        sent_again=sum(by_client and packet.opens for by_client, packet in before_answer) > 1,
        payload=syn.payload_bytes,
        carries_request=syn.payload_bytes > 0 and syn.payload.startswith(REQUEST_STARTS),
        hello=next(filter(None, begins), 0),
        syn_hello=min(syn.payload_bytes, syn_hello),
        fastopen_option=cookie is not None,
        cookie_request=cookie == b"",
        synack_time_ns=None if synack is None else synack.at_ns,
        given_up=_is_given_up(flow),
        syn_data_acked=syn.payload_bytes > 0 and acked == syn.payload_bytes,
        new_cookie=synack is not None and bool(find_option(synack, FAST_OPEN)),
        retransmits=len(sent) - len(set(sent)),
    )


def _is_given_up(flow: Flow) -> bool:
    """Whether the client answered the SYN-ACK without a socket for it.

    It sends RST and no ACK then, with the number that was acknowledged (RFC 9293 section 3.5.2,
    group 1); a socket that ends a connection sends both.
    """
    behind_synack = dropwhile(lambda sent: sent[1] is not flow.synack, flow.packets)
    for by_client, packet in behind_synack:
        if flow.synack is not None and by_client and not packet.opens:
            return packet.flags & (RST | ACK) == RST and packet.seq == flow.synack.ack
    return False
