"""The mechanisms of the virtual kernel: the same on the wire as those of the BPF program."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.guests import Guests
from wings.server_loads.mechanisms.mechanism import MECHANISMS
from wings.server_loads.mechanisms.program import build_program
from wings.server_loads.spec import Mechanism
from wings.server_loads.tests.mechanisms import scenario
from wings.server_loads.tests.mechanisms.expected import (
    AT_THE_ACK,
    AT_THE_SYN,
    EQUAL,
    FLOODED,
    FORGOTTEN,
    RESET,
    SMALL,
    check_wire,
)

pytestmark = pytest.mark.guest
OBSERVE = """\
import scenario
leave(seen=[scenario.observe("g", *one, Path("/tmp")) for one in {asked!r}])
"""
FLOOD = """\
import scenario
leave(seen=[scenario.flood("g", words) for words in {asked!r}])
"""
LATE = scenario.CRAFTED_COUNT - SMALL["listen_backlog"] - 1


def run(guests: Guests, program: str, *asked: object) -> list[dict[str, Any]]:
    """What a program with ``scenario`` left of each that it was asked for."""
    wire = (f"testbed.capture.{name}" for name in ("tcpdump", "counters", "packets"))
    needed = ("wings.server_loads.mechanisms.apply", *wire)
    guests = replace(guests, modules=needed, files=(Path(scenario.__file__),))
    seen: list[dict[str, Any]] = guests.observe(program.format(asked=asked), timeout_s=300)["seen"]
    return seen


def test_what_is_on_the_wire_is_as_promised(guests: Guests) -> None:
    found = run(guests, OBSERVE, *((words, SMALL) for words in MECHANISMS))
    for words, seen in zip(MECHANISMS, found, strict=True):
        check_wire(words, seen)
        assert seen["program"] == {}
        at_syn, at_ack, counted = AT_THE_SYN[words], AT_THE_ACK[words], seen["counters"]
        assert (counted["syn"]["TcpExtListenOverflows"] > 0) or at_syn == RESET
        late_at_ack = at_ack in (RESET, FORGOTTEN)
        assert counted["ack"]["TcpExtListenOverflows"] == LATE
        assert counted["ack"]["TcpExtEmbryonicRsts"] == (LATE if at_ack == RESET else 0)
        assert (counted["ack"]["TcpExtListenDrops"] == LATE) or late_at_ack
        assert (counted["fin"]["TcpEstabResets"] > 0) == ("rst-fin" in words)


def test_every_connection_of_a_flood_is_accounted_for(guests: Guests) -> None:
    found = run(guests, FLOOD, *FLOODED)
    assert [tuple(seen.values()) for seen in found] == list(FLOODED.values())


def test_other_queues(guests: Guests) -> None:
    equal, cookies, young = run(guests, OBSERVE, ("abort rst-syn", EQUAL),
                                ("no-syn-drop", {"syn_backlog": 3, "listen_backlog": 2}),
                                ("default", {**SMALL, "admission": "linux-2.4"}))  # fmt: skip
    assert equal["conversations"][str(scenario.CRAFTED + 4)] == ["client S", "server RA"]
    assert cookies["counters"]["ack"]["TcpExtSyncookiesSent"] == 1
    assert cookies["conversations"][str(scenario.CRAFTED + 4)] == RESET
    assert young["conversations"][str(scenario.MORE)][: len(FORGOTTEN)] == FORGOTTEN


@pytest.mark.nightly
@pytest.mark.machine
@pytest.mark.root
@pytest.mark.slow
def test_both_implementations_say_the_same(guests: Guests, tmp_path: Path) -> None:
    object_file = build_program(tmp_path)
    words: list[Mechanism] = ["default", "abort rst-syn rst-fin", "reserv rst-syn", "no-syn-drop"]
    virtual = run(guests, OBSERVE, *((one, SMALL) for one in words))
    for one, seen in zip(words, virtual, strict=True):
        host = scenario.observe(f"fftb{os.getpid()}", one, SMALL, tmp_path, object_file)
        check_wire(one, host)
        check_wire(one, seen)
        refused = (scenario.MORE, scenario.AGAIN,
                   *range(scenario.CRAFTED, scenario.CRAFTED + scenario.CRAFTED_COUNT))  # fmt: skip
        for port in map(str, refused):
            assert host["conversations"].get(port) == seen["conversations"].get(port)
        assert host["outcomes"] == seen["outcomes"]
