"""Fast Open connections that a client closes before their SYN-ACK: what kernel and capture say."""

from __future__ import annotations

from socket import inet_aton

import pytest
from pydantic import TypeAdapter

from testbed.capture.flows import read_flows
from testbed.capture.packets import read_capture
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import TcpSpec
from tests.evidence import prove
from tests.kernel.guests import Guests

KEPT, GIVEN_UP = 2, 4
OPEN = """\
import socket, time
from testbed.lab.laboratory import open_lab
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec, TcpSpec
from testbed.capture.tcpdump import capture
from testbed.capture.counters import difference, read_counters
TCP_FASTOPEN_CONNECT = 30
REQUEST = b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n"

def fast_open(address):
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    client.connect(address)
    client.setblocking(False)
    try:
        client.send(REQUEST)
    except BlockingIOError:  # in progress: the SYN has left with it
        pass
    return client

condition = Condition("p", "c", LinkSpec(rtt_ms=100.0), TcpSpec(tfo=True))
with open_lab(condition, 1, mechanisms=ACTING) as lab:
    with lab.topology.server.entered():
        listener = socket.create_server(("10.10.0.1", 80), backlog=64)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
    ends = {"client": lab.topology.client, "server": lab.topology.server}
    with lab.topology.client.entered():
        fast_open(listener.getsockname())  # which brings the cookie
    time.sleep(2)
    before = {end: read_counters(namespace) for end, namespace in ends.items()}
    with capture(ends["client"], "c0", Path("/tmp/client.pcap"), Path("/tmp/tcpdump.log")):
        with lab.topology.client.entered():
            kept = [fast_open(listener.getsockname()) for _ in range(%(kept)d)]
            for _ in range(%(given_up)d):
                fast_open(listener.getsockname()).close()
        time.sleep(2)
    after = {end: read_counters(namespace) for end, namespace in ends.items()}
    Path("/ff/out/client.pcap").write_bytes(Path("/tmp/client.pcap").read_bytes())
    leave(counters={end: difference(before[end], after[end]) for end in ends})
"""


@pytest.mark.guest
def test_the_proof_leaves_them_out_of_the_client_s_counter(guests: Guests) -> None:
    seen = guests.observe(OPEN % {"kept": KEPT, "given_up": GIVEN_UP})["counters"]
    counters = TypeAdapter(dict[str, dict[str, int]]).validate_python(seen)
    assert counters["client"]["TcpExtTCPFastOpenActive"] == KEPT
    assert counters["server"]["TcpExtTCPFastOpenPassive"] == KEPT + GIVEN_UP
    flows = read_flows(
        read_capture(guests.folder / "out" / "client.pcap"), [inet_aton(CLIENT_ADDRESS)]
    )
    proof = prove(flows, counters, TcpSpec(tfo=True))
    assert proof.problems == ()
    assert (proof.connections, proof.syn_data_acked) == (KEPT + GIVEN_UP, KEPT + GIVEN_UP)
    assert proof.given_up == GIVEN_UP
