"""The mechanisms on the kernel that runs the tests, proven by captures and by counters."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from wings.server_loads.mechanisms.apply import apply_management, is_patched
from wings.server_loads.mechanisms.mechanism import MECHANISMS, settings_of
from wings.server_loads.mechanisms.program import attach, build_program
from wings.server_loads.spec import Mechanism, ServerSpec
from wings.server_loads.tests.mechanisms import scenario
from wings.server_loads.tests.mechanisms.expected import (
    AT_THE_ACK,
    AT_THE_SYN,
    EQUAL,
    FLOODED,
    FORGOTTEN,
    REFUSED,
    RESET,
    SILENCE,
    SMALL,
    check_wire,
)

pytestmark = [pytest.mark.machine, pytest.mark.root]
EQUAL_QUEUES = ServerSpec(syn_backlog=4096, listen_backlog=4096, syncookies=1)
TAG = f"fftm{os.getpid()}"
LATE = scenario.CRAFTED_COUNT - SMALL["listen_backlog"] - 1
"""Handshakes of the scenario for which there is no room."""


@pytest.fixture(scope="module")
def object_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_program(tmp_path_factory.mktemp("program"))


@pytest.mark.nightly(but="^abort rst-syn rst-fin$")
@pytest.mark.parametrize("words", MECHANISMS)
def test_what_is_on_the_wire_is_as_promised(
    words: Mechanism, object_file: Path, tmp_path: Path
) -> None:
    seen = scenario.observe(TAG, words, SMALL, tmp_path, object_file)
    check_wire(words, seen)
    did = seen["program"]
    at_syn, at_ack = AT_THE_SYN[words], AT_THE_ACK[words]
    # Two clients; one whose SYN finds no answer sends it once more before it gives up.
    refused = {str(SILENCE): 4, str(REFUSED): 2, str(RESET): 0}[str(at_syn)]
    refused += LATE if at_ack in (SILENCE, REFUSED) else 0
    assert did["syns_refused"] == refused
    assert did["syns_reset"] == (refused if "rst-syn" in words else 0)
    acks = 2 * (at_syn == RESET) + (LATE if at_ack in (RESET, FORGOTTEN) else 0)
    assert did["acks_refused"] == acks
    assert did["acks_reset"] == (acks if at_ack == RESET else 0)
    assert did["fins"] > 0
    assert did["fins_reset"] == (did["fins"] if "rst-fin" in words else 0)
    assert did["longest_accept_queue"] == SMALL["listen_backlog"] + 1


@pytest.mark.parametrize("words", FLOODED)
def test_every_connection_of_a_flood_is_accounted_for(words: Mechanism, object_file: Path) -> None:
    assert tuple(scenario.flood(TAG, words, object_file).values()) == FLOODED[words]


@pytest.mark.nightly(but="^default$")
@pytest.mark.parametrize("words", ["default", "abort", "abort rst-syn", "reserv"])
def test_the_kernels_own_limits_are_kept_where_the_queues_are_equal(
    words: Mechanism, object_file: Path, tmp_path: Path
) -> None:
    seen = scenario.observe(TAG, words, EQUAL, tmp_path, object_file)
    said, counted = seen["conversations"], seen["counters"]
    assert said[str(scenario.MORE)] == AT_THE_SYN[words]
    late = REFUSED if "rst-syn" in words else SILENCE
    assert said[str(scenario.CRAFTED + scenario.CRAFTED_COUNT - 1)] == late
    kernels_own = "rst-syn" not in words
    assert (counted["syn"]["TcpExtListenOverflows"] > 0) == kernels_own
    assert (counted["ack"]["TcpExtListenDrops"] > 0) == kernels_own


def test_a_full_syn_queue_gives_cookies_and_their_acks_are_reset(
    object_file: Path, tmp_path: Path
) -> None:
    short = {"syn_backlog": 3, "listen_backlog": 2}
    seen = scenario.observe(TAG, "no-syn-drop", short, tmp_path, object_file)
    assert seen["counters"]["ack"]["TcpExtSyncookiesSent"] == 1
    assert seen["conversations"][str(scenario.CRAFTED + 4)] == RESET
    assert seen["program"]["acks_cookie"] == 1


@pytest.mark.thorough
def test_a_young_queue_lets_a_syn_in_though_there_is_no_room(
    object_file: Path, tmp_path: Path
) -> None:
    seen = scenario.observe(
        TAG, "default", {**SMALL, "admission": "linux-2.4"}, tmp_path, object_file
    )
    assert seen["conversations"][str(scenario.MORE)][: len(FORGOTTEN)] == FORGOTTEN


def test_a_crash_inside_is_undone_too(object_file: Path) -> None:
    asked = replace(EQUAL_QUEUES, mechanism="abort rst-syn rst-fin")
    with scenario.wired(TAG) as (_, server):
        before = scenario.state_of(server)
        with (
            pytest.raises(ZeroDivisionError),
            apply_management(server, "s0", 80, asked, object_file),
        ):
            assert scenario.state_of(server) != before
            raise ZeroDivisionError
        assert scenario.state_of(server) == before


def test_what_a_kernel_lacks_is_named(object_file: Path) -> None:
    asked = replace(EQUAL_QUEUES, mechanism="abort")
    settings = settings_of(asked)
    with scenario.wired(TAG) as (client, server):
        assert not is_patched(server)
        with (
            pytest.raises(MissingError, match=r"no net\.ipv4\.tcp_overload.*'abort'"),
            apply_management(server, "s0", 80, asked),
        ):
            pass
        with (
            pytest.raises(MissingError, match="s9"),
            attach(server, "s9", object_file, settings, 80),
        ):
            pass
        with (
            attach(server, "s0", object_file, settings, 80),
            pytest.raises(MissingError, match=r"(?s)s0.*clsact"),
            attach(server, "s0", object_file, settings, 80),
        ):
            pass
        shown = proc.run(("tc", "-n", client.name, "qdisc", "show")).stdout
    assert "clsact" not in shown
