"""Promise of the protocol as a file: its sentence and source, its script, a fault to break it.

A scenario's file is TOML.  Standard library only: guests read it, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testbed.base.suggest import did_you_mean
from wings.scenarios.script import Script, ScriptError, parse_script

_TEXTS = ("title", "source", "promise", "lesson", "steps", "fault")
_CHANGED = ("since", "says", "steps")
_DEFAULT_RTT_MS = 100.0
_SLOTS = tuple(1 << power for power in range(1, 15))
_LONGEST_RTT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Change:
    """What kernels do where it is no longer what was promised: since when, in words, and how."""

    since: str
    says: str
    script: Script


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of the protocol.

    ``source`` is where it is made, ``promise`` what is made, ``lesson`` what to learn from it.
    ``steps`` is its script's text, and ``fault`` lines of a script that break it when they come
    first, or in place of ``# fault``.  ``ip`` is over which IP, 4 or 6.  ``cache_slots`` is how
    many slots of six servers a kernel has for what it knows of them; ``None``: as many as it likes.
    """

    title: str
    source: str
    promise: str
    lesson: str
    steps: str
    fault: str
    script: Script
    rtt_ms: float = _DEFAULT_RTT_MS
    ip: str = "4"
    cache_slots: int | None = None
    changed: Change | None = None


class PromiseError(ValueError):
    """A file that is no scenario: ``problems`` has a sentence for each thing that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        """Keep ``problems``."""
        super().__init__("\n".join(problems))
        self.problems = problems


def read_promise(text: str) -> Promise:
    """Return what the file with this ``text`` promises.

    Raises:
        PromiseError: with everything that is wrong in it.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PromiseError([f"not TOML: {error}"]) from None
    problems = [*_wrong_texts(document, "", _TEXTS, "rtt_ms", "ip", "cache_slots", "changed")]
    rtt_ms = document.get("rtt_ms", _DEFAULT_RTT_MS)
    if isinstance(rtt_ms, bool) or not isinstance(rtt_ms, int | float):
        problems.append("rtt_ms: not a number of milliseconds")
    elif not 0 < rtt_ms <= _LONGEST_RTT_MS:
        problems.append(f"rtt_ms: {rtt_ms:g} is not above 0 and up to {_LONGEST_RTT_MS}")
    ip = str(document.get("ip", 4))
    if ip not in ("4", "6"):
        problems.append("ip: neither 4 nor 6")
    slots = document.get("cache_slots")
    if slots is not None and slots not in _SLOTS:
        problems.append(f"cache_slots: {slots!r} is no power of two from 2 to {_SLOTS[-1]}")
    change = document.get("changed")
    if change is not None:
        if isinstance(change, dict):
            problems += _wrong_texts(change, "changed.", _CHANGED)
        else:
            problems.append("changed: not a table; write it as [changed]")
    if problems:
        raise PromiseError(problems)
    fault = _script("fault", document["fault"], problems)
    script = _script("steps", document["steps"], problems)
    other = None if change is None else _script("changed.steps", change["steps"], problems)
    if fault is not None and (fault.expectations or not fault.actions):
        problems.append("fault: takes lines that do something, and no packets")
    if script is not None and other is not None and _done(script) != _done(other):
        problems.append(
            "changed.steps: does something else than steps; only what is expected may differ"
        )
    if script is not None and ip == "6":
        problems += _of_ipv4(script)
    if problems or script is None:
        raise PromiseError(problems)
    return Promise(
        **{name: document[name].strip() for name in _TEXTS},
        script=script,
        rtt_ms=float(rtt_ms),
        ip=ip,
        cache_slots=slots,
        changed=None
        if change is None or other is None
        else Change(change["since"].strip(), change["says"].strip(), other),
    )


def _script(name: str, text: str, problems: list[str]) -> Script | None:
    try:
        return parse_script(text)
    except ScriptError as error:
        problems += [f"{name}, line {line}: {problem}" for line, problem in error.problems]
        return None


def _wrong_texts(
    table: dict[str, Any], where: str, texts: tuple[str, ...], *others: str
) -> Iterator[str]:
    """Yield a problem for each key of a table that is unknown, and each text that it lacks."""
    known = (*texts, *others)
    for name in table:
        if name not in known:
            near = did_you_mean(name, known)
            yield f"{where}{name}: unknown key{near}; allowed: {', '.join(known)}"
    for name in texts:
        if not isinstance(table.get(name), str) or not table[name].strip():
            yield f"{where}{name}: missing, or no text"


def _of_ipv4(script: Script) -> Iterator[str]:
    """Yield a problem for each line that is for IPv4 alone."""
    for action in script.actions:
        own = action.verb == "visit" or "address" in action.options
        if own or any(word.startswith("md5=") for word in action.words):
            yield (
                f"steps, line {action.line}: address=, md5= and visit are for IPv4; "
                "leave out ip = 6"
            )


def _done(script: Script) -> list[tuple[Any, ...]]:
    """Return what a script does, whatever is expected of it."""
    return [(each.actor, each.verb, each.words, each.options) for each in script.actions]
