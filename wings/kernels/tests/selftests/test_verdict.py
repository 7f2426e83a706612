"""Verdicts on selftests: TAP, exit status, packetdrill's lines, and warnings of the kernel."""

from __future__ import annotations

from wings.kernels.selftests.verdict import Said, judge

TAP = """\
TAP version 13
1..3
ok 1 ipv4
a.pkt:52: error handling packet: bad value in outbound TCP option
script packet:  0.100098 S. 0:0(0) ack 1
actual packet:  0.100098 S. 0:0(0) ack 1 win 65535
not ok 2 ipv6
ok 3 mapped # SKIP no such thing
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
"""
OF_KERNEL = """\
[    0.000000] Linux version 7.3.4
[    0.120000] ------------[ cut here ]------------
[    0.120000] WARNING: net/ipv4/tcp.c:17 at tcp_planted+0x1/0x2, CPU#0: packetdrill/41
[    0.120000] Call Trace:
"""


def test_packetdrills_line_is_the_reason_of_its_part() -> None:
    verdict = judge("a", [Said("", 1, TAP)], "", 0.3)
    assert verdict.state == "failed"
    assert verdict.reason.startswith("ipv6: a.pkt:52: error handling packet: bad value")
    assert [part.state for part in verdict.parts] == ["passed", "failed", "skipped"]
    assert len(verdict.evidence) == 3


def test_status_0_passes_and_4_is_skipped_with_the_reason() -> None:
    assert judge("a", [Said("", 0, "ok 1 ipv4\n")], "", 0).state == "passed"
    skipped = judge("a", [Said("", 4, "SKIP: jq is not installed\n")], "", 0)
    assert (skipped.state, skipped.reason) == ("skipped", "jq is not installed")


def test_another_status_or_none_fails_whatever_was_said() -> None:
    assert judge("a", [Said("", 1, "ok 1 a\n")], "", 0).state == "failed"
    assert judge("a", [Said("", -11, "")], "", 0).reason == "signal 11"
    assert "did not end" in judge("a", [Said("ipv4", None, "")], "", 0).reason


def test_commands_with_a_name_are_parts() -> None:
    said = [Said("ipv4", 0, ""), Said("ipv6", 1, "x.pkt:7: runtime error in read call\n")]
    verdict = judge("x", said, "", 0)
    assert [(part.name, part.state) for part in verdict.parts] == [
        ("ipv4", "passed"), ("ipv6", "failed"),
    ]  # fmt: skip
    assert verdict.reason == "ipv6: x.pkt:7: runtime error in read call"


def test_a_kernel_warning_fails_a_test_that_passed_with_its_first_lines() -> None:
    verdict = judge("a", [Said("", 0, "ok 1 ipv4\n")], OF_KERNEL, 0)
    assert verdict.state == "failed"
    assert "tcp_planted" in verdict.reason
    assert verdict.evidence[0].startswith("WARNING: net/ipv4/tcp.c:17 at tcp_planted")
    assert judge("a", [Said("", 0, "ok 1 ipv4\n")], "[    0.1] random: done\n", 0).state == "passed"
    for line in (
        "BUG: KASAN: slab-use-after-free in tcp_x", "UBSAN: array-index-out-of-bounds in a.c:1",
        "WARNING: possible circular locking dependency detected", "Kernel panic - not syncing: x",
        "BUG: sleeping function called from invalid context at a.c:1",
    ):  # fmt: skip
        verdict = judge("a", [], f"[    1.000000] {line}\n", 0)
        assert verdict.reason == f"the kernel says: {line}"
