"""Captures of real packets, and what happens when there can be none."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.capture.connections import read_connection
from testbed.capture.flows import read_flows
from testbed.capture.packets import read_capture
from testbed.capture.tcpdump import SNAP_BYTES, WHOLE_BYTES, capture, capture_argv, snap_bytes
from testbed.model import Condition
from tests.lab.wires import LEFT_ADDRESS, RIGHT_ADDRESS, Ends, joined

# As in a trial: tcpdump reads its packets a moment after they passed.
DRAIN_S = 0.5
COUNTS = re.compile(r"(\d+) packets? (?:captured|received)")
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_the_command() -> None:
    argv = capture_argv("c0", Path("/scratch/client.pcap"))
    assert argv[:5] == ("tcpdump", "-i", "c0", "-n", "-w")
    assert argv[5] == "/scratch/client.pcap"
    assert "--time-stamp-precision=nano" in argv
    assert argv[argv.index("-s") + 1] == str(SNAP_BYTES)


@pytest.fixture(scope="module")
def ends() -> Iterator[Ends]:
    """Two namespaces with a wire, Fast Open without cookies at both ends."""
    with joined("w") as pair:
        for end in pair:
            end.write_sysctls({"net.ipv4.tcp_fastopen": "519"})
        yield pair


def talk(ends: Ends, requests: list[bytes]) -> None:
    """One Fast Open connection for each of ``requests``, to its very end."""
    client, server = ends
    with server.entered():
        listener = socket.create_server((RIGHT_ADDRESS, 80))
    with listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
        for request in requests:
            with client.entered():
                out = socket.socket()
            with out:
                out.sendto(request, socket.MSG_FASTOPEN, (RIGHT_ADDRESS, 80))
                accepted, _ = listener.accept()
                with accepted:
                    assert accepted.recv(9999) == request
                assert out.recv(1) == b""
    time.sleep(DRAIN_S)


def processes(end: Namespace) -> list[int]:
    """What runs there: tcpdump, or nothing."""
    return [int(each) for each in proc.run(("ip", "netns", "pids", end.name)).stdout.split()]


def await_all_read(client: Namespace, log: Path) -> None:
    """Ask tcpdump for its counts until it has read what came: a busy machine lets it wait."""
    (tcpdump,) = processes(client)
    counts: list[str] = []
    while len(counts) < 2 or counts[-1] != counts[-2]:
        before = len(counts)
        os.kill(tcpdump, signal.SIGUSR1)
        while len(counts) < before + 2:
            time.sleep(0.01)
            counts = COUNTS.findall(log.read_text())


@pytest.mark.root
def test_every_packet_is_in_the_file(ends: Ends, tmp_path: Path) -> None:
    pcap = tmp_path / "client.pcap"
    requests = [REQUEST, b"GET /" + b"x" * 900, REQUEST]
    started = time.time_ns()
    with capture(ends[0], "c0", pcap, tmp_path / "log"):
        talk(ends, requests)
        await_all_read(ends[0], tmp_path / "log")
    ended = time.time_ns()
    flows = read_flows(read_capture(pcap), [socket.inet_aton(LEFT_ADDRESS)]).flows
    found = [read_connection(flow) for flow in flows]
    assert [c.payload for c in found] == [len(request) for request in requests]
    assert all(c.carries_request and c.syn_data_acked for c in found)
    for connection in found:
        assert connection.synack_time_ns is not None
        assert started < connection.syn_time_ns < connection.synack_time_ns < ended
    # Microseconds would all be multiples of 1000.
    assert any(c.syn_time_ns % 1000 for c in found)


@pytest.mark.root
def test_frames_are_cut_at_the_snap_length(ends: Ends, tmp_path: Path) -> None:
    pcap = tmp_path / "client.pcap"
    with capture(ends[0], "c0", pcap, tmp_path / "log"):
        talk(ends, [b"GET /" + b"y" * 1000])
        await_all_read(ends[0], tmp_path / "log")
    assert 100 < pcap.read_bytes().count(b"y") < SNAP_BYTES


@pytest.mark.root
def test_a_device_that_does_not_exist(ends: Ends, tmp_path: Path) -> None:
    with (
        pytest.raises(LabError, match=r"tcpdump did not start: [^\0]*nosuch0"),
        capture(ends[0], "nosuch0", tmp_path / "client.pcap", tmp_path / "log"),
    ):
        pytest.fail("there is nothing to capture on")


@pytest.mark.root
def test_packets_that_were_not_read_are_missed(ends: Ends, tmp_path: Path) -> None:
    with (
        pytest.raises(LabError, match="the capture is not complete"),
        capture(ends[0], "c0", tmp_path / "client.pcap", tmp_path / "log"),
    ):
        (tcpdump,) = processes(ends[0])
        os.kill(tcpdump, signal.SIGSTOP)
        talk(ends, [REQUEST])
        os.kill(tcpdump, signal.SIGINT)  # before it may read on
        os.kill(tcpdump, signal.SIGCONT)


@pytest.mark.root
def test_nothing_runs_after_an_error(ends: Ends, tmp_path: Path) -> None:
    pcap, log = tmp_path / "client.pcap", tmp_path / "log"
    with pytest.raises(KeyError), capture(ends[0], "c0", pcap, log):
        raise KeyError
    assert processes(ends[0]) == []


@pytest.mark.root
def test_a_capture_that_ends_early_is_an_error(ends: Ends, tmp_path: Path) -> None:
    with (
        pytest.raises(LabError, match="the capture is not complete"),
        capture(ends[0], "c0", tmp_path / "client.pcap", tmp_path / "log"),
    ):
        (tcpdump,) = processes(ends[0])
        os.kill(tcpdump, signal.SIGKILL)
        while processes(ends[0]):
            time.sleep(0.01)


def test_frames_are_kept_whole_where_checksums_or_secrets_need_that() -> None:
    plain = Condition("page", "chromium")
    damaged = replace(plain, link=replace(plain.link, corrupt_pct=1.0))
    assert snap_bytes(plain) == SNAP_BYTES
    assert snap_bytes(damaged) == snap_bytes(plain, tls=True) == WHOLE_BYTES
