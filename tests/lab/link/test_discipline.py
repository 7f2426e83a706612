"""Disciplines as a 7.3 guest told them, parsed and held against what was asked."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from testbed.base.namespace import Namespace
from testbed.lab.link.discipline import (
    NONE,
    Discipline,
    encode_discipline,
    netem,
    parse_discipline,
    tbf,
)
from testbed.lab.link.netem import NetemLink
from testbed.lab.topology import Topology
from testbed.model import LinkSpec

DEVICES = {2: "n0", 3: "n1"}
BURSTS = {
    "to_bad_pct": 1.0, "to_good_pct": 30.0, "bad_kept_pct": 0.0, "good_loss_pct": 0.0,
}  # fmt: skip
NETEM = bytes.fromhex(
    "000000000200000000000280ffffffff020000000a0001006e6574656d0000007c000200841e0000a08601003d0ad703"
    "0000000000000000000000000c000a0000a10700000000000c000b000000000000000000100001000000000000000000"
    "000000000c00030000000000000000000c00040000000000000000001400060020a10700f2ffffff0000000000000000"
    "0c000e0059f37e994cb53d0105000c00000000006c0007003c0004005d00000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000000000000000000000014000100aa0a020000000000"
    "5d000000000000001800030000000000000000000000000000000000000000002c000300aa0a0200000000005d000000"
    "0000000000000000000000000000000000000000"
)
TBF = bytes.fromhex(
    "000000000300000000000380ffffffff0200000008000100746266002c000200280001000001000000000000007d0000"
    "0000000000000000000000000000020051790b000000000005000c0000000000200008001c00010000000000f2ffffff"
    "01000000000000000000000000000000300007001400010094050200000000005d000000000000001800030000000000"
    "000000000c00000000000000b90000002c00030094050200000000005d0000000c000000b90000000000000000000000"
    "000000000000000000000000"
)
STRANGE = bytes.fromhex(
    "000000000200000000000280ffffffff020000000a0001006e6574656d000000a80002005a620200e803000000000000"
    "01000000295c8f021bb700000c000a0080969800000000000c000b00c0c62d0000000000100001000000000000000000"
    "000000000c000300cdcccc0c000000000c00040052b81e05000000000c00080000f2052a0100000014000600ffffffff"
    "00000000000000000000000008000700010000001800050014000200295c8f029a99991900000000000000000c000e00"
    "59f37e994cb53d0105000c0000000000"
)


def parse(body: bytes) -> Discipline:
    return parse_discipline(body, DEVICES)[1]


def test_a_buffer() -> None:
    found = parse(TBF)
    assert found.has(tbf(256, 1540, 131072, -14))
    assert (found.packets, found.dropped, found.queued) == (93, 12, 0)
    assert parse_discipline(TBF, DEVICES)[0] == "n1"
    assert parse_discipline(TBF, {})[0] == "?"


@pytest.mark.parametrize(
    "other",
    [tbf(255, 1540, 131072, -14), tbf(256, 1600, 131072, -14), tbf(256, 1540, 131071, -14),
     tbf(256, 1540, 131072, 0), Discipline("noqueue"), netem(256, 0, 1, -14, 0.0)],
)  # fmt: skip
def test_another_buffer(other: Discipline) -> None:
    assert not parse(TBF).has(other)


def test_a_delay() -> None:
    found = parse(NETEM)
    # 500 us are 7812.5 ticks: the kernel was given 7812 of them.
    assert found.settings["delay_ns"] == 499_968
    assert found.has(netem(4000, 500_000, 100_000, -14, 1.5))
    assert found.drawn == "59f37e994cb53d01"
    assert found.text.startswith("netem rate_bytes_s 500000 delay_ns 499968 limit_packets 100000")


@pytest.mark.parametrize(
    "other",
    [netem(3960, 500_000, 100_000, -14, 1.5), netem(4000, 501_000, 100_000, -14, 1.5),
     netem(4000, 500_000, 1000, -14, 1.5), netem(4000, 500_000, 100_000, 0, 1.5),
     netem(4000, 500_000, 100_000, -14, 1.49)],
)  # fmt: skip
def test_another_delay(other: Discipline) -> None:
    assert not parse(NETEM).has(other)


def test_whatever_else_is_set_is_told() -> None:
    found = parse(STRANGE)
    assert found.extras == "gap 1 3=cdcccc0c00000000 7=01000000"
    assert {name: round(value, 4) for name, value in found.settings.items()} == {
        "rate_bytes_s": 5e9, "delay_ns": 10e6, "limit_packets": 1000, "overhead_bytes": 0,
        "loss_pct": 0, "jitter_ns": 3e6, "duplicate_pct": 1, "corrupt_pct": 2, "to_bad_pct": 1,
        "to_good_pct": 10, "bad_kept_pct": 0, "good_loss_pct": 0,
    }  # fmt: skip
    wanted = replace(found, extras="")
    assert not found.has(wanted) and wanted.has(wanted)


@pytest.mark.parametrize(
    "wanted",
    [tbf(4000, 1540, 131_072, -14), tbf(256, 616, 9000, 0), tbf(1_000_000, 9040, 4_000_000, 0),
     netem(256, 10_000_000, 100_000, -14, 0.0), netem(4000, 16_667_008, 100_000, 0, 1.5),
     netem(4000, 16_667_008, 100_000, 0, 0.0, jitter_ns=3_000_001, duplicate_pct=1.5),
     replace(netem(4000, 16_667_008, 100_000, 0, 0.0, corrupt_pct=0.3), drawn="59f37e994cb53d01"),
     netem(4000, 0, 100_000, 0, 0.0, **BURSTS), Discipline(NONE)],
)  # fmt: skip
def test_what_is_set_is_what_is_read(wanted: Discipline) -> None:
    head = struct.pack("=BxxxiIII", 0, 2, 0x10000, 0xFFFFFFFF, 0)
    device, found = parse_discipline(head + encode_discipline(wanted), DEVICES)
    assert device == DEVICES[2]
    # The bucket goes to the kernel in bytes, and comes back in ticks only.
    burst = struct.pack("=I", round(wanted.settings.get("burst_bytes", 0))).hex()
    assert found.extras == (f"6={burst}" if wanted.kind == "tbf" else "")
    assert replace(found, extras="").has(wanted)


def test_one_inside_another() -> None:
    inside = bytearray(NETEM)
    inside[12:16] = struct.pack("=I", 0x10001)
    assert parse_discipline(bytes(inside), DEVICES)[0] == "n0 10001"


def test_a_seed_that_was_asked_for() -> None:
    """Where none was asked for any is as good, and where none is told nobody knows."""
    wanted = replace(netem(256, 0, 1, 0, 1.0), drawn="01" * 8)
    assert wanted.has(wanted) and wanted.has(replace(wanted, drawn=""))
    assert replace(wanted, drawn="").has(wanted)
    assert not replace(wanted, drawn="02" * 8).has(wanted)


def test_what_a_netem_counts() -> None:
    """Of a packet that is to be doubled and lost at once there is no copy, and no drop."""
    told = struct.pack("=7Q", 0, 4, 3, 9, 0, 0, 0)
    stats = struct.pack("=HHIIIIIHH", 24, 3, 0, 0, 0, 0, 0, 4 + len(told), 4) + told
    body = NETEM[: NETEM.index(bytes.fromhex("6c000700"))]
    body += struct.pack("=HH", 4 + len(stats), 7) + stats
    found = parse(body)
    assert (found.corrupted, found.duplicated) == (3, 5)
    older = body.replace(stats[24:], b"").replace(
        struct.pack("=HH", 4 + len(stats), 7), struct.pack("=HH", 28, 7)
    )
    assert (parse(older).corrupted, parse(older).duplicated) == (None, None)


def test_what_the_link_asks_for() -> None:
    client, near, far, server = map(Namespace, ("client", "near", "far", "server"))
    topology = Topology(client, near, far, server)
    link = NetemLink(topology, LinkSpec(rtt_ms=33.334, framing_bytes=14))
    assert link.wanted_disciplines() == {
        ("far", "f0"): tbf(4000, 1540, 131072, 0),
        ("near", "n0"): netem(4000, 16_667_000, 100_000, 0, 0.0),
        ("near", "n1"): tbf(256, 1540, 131072, 0),
        ("far", "f1"): netem(256, 16_667_000, 100_000, 0, 0.0),
    }
