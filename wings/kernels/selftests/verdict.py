"""Verdict on a selftest: from what it said, how it ended, and what the kernel said meanwhile.

A test passes with status 0 and is skipped with 4 (Documentation/dev-tools/kselftest.rst); what it
says in TAP names its parts (Documentation/dev-tools/ktap.rst).  A warning of the kernel fails it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.base.kernel_warning import parse_warnings

State = Literal["passed", "failed", "skipped", "incomplete"]
SKIPPED = 4
EVIDENCE_LINES = 12
_RESULT = re.compile(r"^(not ok|ok) \d+\s*(?:- )?(.*?)\s*(?:#\s*(SKIP|XFAIL)\b\s*(.*))?$")
_PACKETDRILL = re.compile(r"^\S+\.pkt:\d+: .+$")
_SKIP = re.compile(r"\b(?:SKIP|skip(?:ping|ped)?)\b:?\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TestPart:
    """A part of a test, such as ``ipv6``, and what became of it."""

    __test__ = False  # no test class of pytest's

    name: str
    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a test.

    Attributes:
        name: the test's.
        state: passed, failed, skipped, or incomplete: it did not come to its end.
        reason: one line; empty where it passed.
        parts: in the order in which it says them.
        evidence: lines that show why it failed.
        virtual_s: how long its guest took by its own clock.
    """

    name: str
    state: State
    reason: str = ""
    parts: tuple[TestPart, ...] = ()
    evidence: tuple[str, ...] = ()
    virtual_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a command of a test said and how it ended; status ``None``: it was ended."""

    name: str
    status: int | None
    output: str


def judge(name: str, said: Sequence[Said], kernel: str, virtual_s: float) -> Verdict:
    """Return the verdict on a test that came to its end."""
    parts = tuple(part for command in said for part in _parts(command))
    warning = next(parse_warnings(kernel), None)
    state, reason = _overall(said, parts)
    evidence: tuple[str, ...] = ()
    if warning is not None:
        title, evidence = warning
        state, reason = "failed", f"the kernel says: {title}"
    elif state == "failed":
        evidence = tuple(line for command in said for line in _telling(command.output))
        evidence = evidence[:EVIDENCE_LINES]
    return Verdict(name, state, reason, parts, evidence, virtual_s)


def _overall(said: Sequence[Said], parts: Sequence[TestPart]) -> tuple[State, str]:
    failed = [part for part in parts if part.state == "failed"]
    if failed:
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return "failed", f"{failed[0].name}: {failed[0].reason or 'not ok'}{others}"
    for command in said:
        if command.status is None:
            return "failed", f"{command.name or 'it'} did not end in time".strip()
        if command.status not in {0, SKIPPED}:
            last = _last_line(command.output)
            how = f"signal {-command.status}" if command.status < 0 else f"status {command.status}"
            return "failed", f"{last} ({how})" if last else how
    if any(command.status == SKIPPED for command in said) or (
        parts and all(part.state == "skipped" for part in parts)
    ):
        return "skipped", next(filter(None, map(_why_skipped, said)), "it says no reason")
    return "passed", ""


def _parts(command: Said) -> list[TestPart]:
    """Return the parts that a command says in TAP, or the one that it is."""
    if command.name:
        lines = list(filter(_PACKETDRILL.match, command.output.splitlines()))
        if command.status == 0:
            return [TestPart(command.name, "passed")]
        ended = "did not end in time" if command.status is None else f"status {command.status}"
        return [TestPart(command.name, "failed", lines[0] if lines else
                     _last_line(command.output) or ended)]  # fmt: skip
    parts, before = [], ""
    for line in command.output.splitlines():
        if _PACKETDRILL.match(line):
            before = before or line
        elif found := _RESULT.match(line):
            result, name, directive, why = found.groups()
            state: State = "passed" if result == "ok" else "failed"
            if directive == "SKIP":
                state = "skipped"
            elif directive == "XFAIL":
                state = "passed"
            parts.append(TestPart(name, state, why or (before if state == "failed" else "")))
            before = ""
    return parts


def _telling(output: str) -> list[str]:
    """Return the lines of an output that tell why a test fails: packetdrill's, or the last."""
    lines = [line for line in output.splitlines() if line.strip()]
    telling = [
        shown for number, line in enumerate(lines) if _PACKETDRILL.match(line)
        for shown in (line, *(more for more in lines[number + 1 : number + 3]
                              if more.startswith(("script packet", "actual packet"))))
    ]  # fmt: skip
    if telling:
        return telling
    failing = [line for line in lines if line.startswith(("not ok", "# ")) and "ok" not in line[:1]]
    return (failing or lines)[-EVIDENCE_LINES:]


def _why_skipped(command: Said) -> str:
    for line in command.output.splitlines():
        found = _SKIP.search(line)
        if found and not line.startswith("# Totals"):
            return found.group(1).strip() or line.strip()
    return _last_line(command.output)


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line.startswith("# Totals")), "")
