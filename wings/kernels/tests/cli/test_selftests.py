"""Verdicts on selftests as they are printed: table, KTAP, TAP 13, JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from analysis.formats.suites import Tested
from wings.kernels.selftests.printed import render, render_junit
from wings.kernels.selftests.verdict import TestPart, Verdict

TESTED = Tested("mine", "results/x", "2026-11-27T02:00:00Z", "2026-11-27T02:01:00Z", {}, "0" * 16)
VERDICTS = [Verdict("net/a", "passed", "", (TestPart("x", "passed"),)),
            Verdict("net/b", "failed", "x: b.pkt:4: bad", (TestPart("x", "failed"),),
                    ("b.pkt:4: bad",)), Verdict("net/c", "skipped", "no # TLS"),
            Verdict("net/d", "incomplete", "the guest did not end")]  # fmt: skip


def test_tap13_is_flat_and_says_why() -> None:
    assert render(VERDICTS, TESTED, "tap13").splitlines() == [
        "TAP version 13", "1..4", "ok 1 - net/a", "# x: b.pkt:4: bad", "# b.pkt:4: bad",
        "not ok 2 - net/b", "ok 3 - net/c # skip no TLS", "# the guest did not end",
        "not ok 4 - net/d",
    ]  # fmt: skip


def test_ktap_and_junit_have_each_test() -> None:
    ktap = render(VERDICTS, TESTED, "ktap")
    assert "  not ok 2 net/b" in ktap
    assert "  ok 3 net/c # SKIP no TLS" in ktap
    suite = ElementTree.fromstring(render_junit(VERDICTS, TESTED)).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "1", "1")


def test_the_table_has_what_did_not_pass_and_counts() -> None:
    text = render(VERDICTS, TESTED, "table")
    assert "net/a" not in text
    assert "4 tests: 1 passed, 1 failed, 1 skipped, 1 incomplete; 1 of 2 parts passed" in text
