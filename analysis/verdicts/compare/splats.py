"""Splats: what the consoles of a kernel's trials say that it did wrong, by their first lines.

A warning (WARN_ON), a bug, a panic, a complaint of a checker such as lockdep or UBSAN, and memory
that ran out (Documentation/admin-guide/bug-hunting.rst).  A load may well go on after one, and be
proven: its number is no longer worth much.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.words import clean
from testbed.model import Record

CONSOLE_FILE = "console.log"
MOST_BYTES = 1 << 20
"""So much of a console is read: the first splats are what matters."""
MOST_LINES = 12
"""Of a splat so many lines are shown."""
_MOST_TRACE = 40
"""So many lines after its first one are a splat's, if it does not say where it ends."""

_TIME = re.compile(r"^\[ *\d+\.\d+\](?:\[[^\]]*\])? ?")
"""Goes before all that a kernel writes, and before nothing that programs write on its console."""
_BEGIN = re.compile(
    _TIME.pattern + r"(?:WARNING: |BUG: |kernel BUG at |Kernel panic - not syncing|UBSAN: |KASAN: "
    r"|(?:rcu: )?INFO: (?:rcu|task|trying to register)|Oops|general protection fault"
    r"|Out of memory|\S+ invoked oom-killer|\S+: page allocation failure|TCP: out of memory"
    r"|TCP: Attempt to release|kmemleak: \d+ new suspected|unregister_netdevice: waiting for"
    r"|refcount_t: |(?:list_add|list_del) corruption)"
)
_FATAL = re.compile(_TIME.pattern + r"(?:BUG: |kernel BUG|Oops|general protection)")
_PANIC = re.compile(_TIME.pattern + r"Kernel panic")
"""What ends a kernel after its own splat is no other one."""
_END = re.compile(_TIME.pattern + r"---\[ end (?:trace|Kernel panic)")
_RULER = re.compile(r"^[-=]{6,}|^-+\[ cut here \]-+$")
_NOISE = re.compile(r"^(?:CPU: \d|Stack:$|Modules linked in|Call Trace:$|Hardware name)| *$")
_WORDS_OF_STACK = re.compile(r"^(?: [0-9a-f]{8,16})+$")
_NAMELESS = re.compile(r"^ \[<[0-9a-f]+>\] (?:\? )?(?:0x[0-9a-f]+|\S+\+0x0/0x[0-9a-f]+)$")
"""An address without a name, or of a function's begin, to which nothing returns."""
_PRINTS = re.compile(
    r"^ \[<[0-9a-f]+>\] (?:\? )?(?:show_stack|dump_stack|dump_stack_lvl|_?printk|vprintk\w*|__warn"
    r"|warn_slowpath_fmt|v?panic|__report_bug|report_bug)(?:\.\w+)*\+0x"
)
"""Functions that write the splat."""
_WHO = re.compile(r",? CPU#\d+: .*$|CPU: \d+ (?:UID: \d+ )?PID: \d+ ")
_FUNCTION = re.compile(r"\b([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")
_FILE = re.compile(r"\b([\w./-]+\.[chS]):\d+")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


@dataclass(frozen=True, slots=True)
class Splat:
    """What a kernel complained of, once for all trials in which it did."""

    title: str
    """Its first line, without the time, and who ran."""
    lines: tuple[str, ...]
    """Its first lines, of one trial; functions are named where the kernel's build kept them."""
    trials: int
    """In how many trials it came."""

    def is_like(self, other: Splat) -> bool:
        """Return whether both are of one place in the source, as far as both know it."""
        ours, theirs = _place(self.title), _place(other.title)
        known = zip(ours, theirs, strict=True)
        return all(a == b or None in (a, b) for a, b in known)


def find_splats(folder: Path, records: Iterable[Record]) -> tuple[Splat, ...]:
    """Return what the kernel of ``records`` complained of, what came in most trials first.

    ``folder`` is their results folder; of what did not end well the record has the console's end.
    """
    found: list[Splat] = []
    for record in records:
        said = _read_console(folder, record) or record.reason or ""
        found += dict.fromkeys(
            merge_splats(Splat(*each, 1) for each in parse_splats(said)).values()
        )
    merged = merge_splats(found)
    counts = Counter(merged[splat] for splat in found)
    return tuple(replace(splat, trials=n) for splat, n in counts.most_common())


def merge_splats(splats: Iterable[Splat]) -> dict[Splat, Splat]:
    """Return the first of ``splats`` that each of them is like."""
    merged: dict[Splat, Splat] = {}
    for splat in splats:
        first = next((each for each in merged.values() if each.is_like(splat)), splat)
        merged.setdefault(splat, first)
    return merged


def parse_splats(console: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the title and the first lines of each splat on a console."""
    lines = [line.rstrip() for line in console.splitlines()]
    place = 0
    while place < len(lines):
        if not _BEGIN.match(lines[place]):
            place += 1
            continue
        end = _end_of(lines, place)
        said = [_TIME.sub("", line) for line in lines[place:end]]
        told = dict.fromkeys(clean(line) for line in said if _tells(line))
        yield clean(_WHO.sub("", said[0])), tuple(told)[:MOST_LINES]
        place = end


def _end_of(lines: Sequence[str], begin: int) -> int:
    """Return where a splat ends that has begun: by its own word, or where another begins."""
    fatal = _FATAL.match(lines[begin])
    for place in range(begin + 1, min(begin + _MOST_TRACE, len(lines))):
        follows = _BEGIN.match(lines[place]) and not (fatal and _PANIC.match(lines[place]))
        if _END.match(lines[place]) or follows:
            return place
    return min(begin + _MOST_TRACE, len(lines))


def _tells(line: str) -> bool:
    """Return whether a line says something to a reader: no rulers, stacks or bare addresses."""
    noise = (_RULER, _NOISE, _WORDS_OF_STACK, _NAMELESS, _PRINTS)
    return not any(pattern.match(line) for pattern in noise)


def _place(title: str) -> tuple[str, str | None, str | None]:
    """Return the kind of a splat, and the file and the function that it names."""
    file, function = _FILE.search(title), _FUNCTION.search(title)
    kind = title.partition(":")[0] if file or function else _NUMBER.sub("#", title)
    return kind, file and file[1], function and function[1]


def _read_console(folder: Path, record: Record) -> str:
    """Return the console of a trial; empty where it is not kept.

    An attempt that was repeated is kept beside the trial's folder.
    """
    trial = folder / "trials" / record.trial_id
    for place in (trial.with_name(f"{record.trial_id}.attempt{record.attempt}"), trial):
        try:
            with (place / CONSOLE_FILE).open("rb") as stream:
                return stream.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return ""
