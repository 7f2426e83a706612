"""Kernel warnings: what a kernel's console says that it did wrong, by their first lines.

A warning (WARN_ON), a bug, a panic, a complaint of a checker such as lockdep or UBSAN, memory that
ran out (Documentation/admin-guide/bug-hunting.rst), and memory that leaked
(Documentation/dev-tools/kmemleak.rst).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

LEAKS = "looking for leaked memory"
"""A guest's init says so on the console before its kernel does (testbed/native/init.c)."""
MOST_LINES = 12
"""Of a warning so many lines are shown."""
_MOST_TRACE = 40
"""So many lines after its first one are a warning's, if it does not say where it ends."""

_TIME = re.compile(r"^\[ *\d+\.\d+\](?:\[[^\]]*\])? ?")
"""Goes before all that a kernel writes, and before nothing that programs write on its console."""
_BEGIN = re.compile(
    _TIME.pattern + r"(?:WARNING: |BUG: |kernel BUG at |Kernel panic - not syncing|UBSAN: |KASAN: "
    r"|(?:rcu: )?INFO: (?:rcu|task|trying to register|possible|suspicious)|Oops"
    r"|general protection fault|Out of memory|\S+ invoked oom-killer|\S+: page allocation failure"
    r"|TCP: out of memory|TCP: Attempt to release|kmemleak: \d+ new suspected"
    r"|unregister_netdevice: waiting for|refcount_t: |ref_tracker: |ODEBUG: "
    r"|(?:list_add|list_del) corruption)"
)
_LEAK = re.compile(_TIME.pattern + r"kmemleak: unreferenced object.*\(size (\d+)\)")
_OF_LEAK = re.compile(_TIME.pattern + r"kmemleak: {2,}(\S.*)")
_CONTENTS = re.compile(r"hex dump|(?:[0-9a-f]{2} ){4}")
_TRACED = re.compile(r"(?:\[<.*?>\] )?(\S+\+0x[0-9a-f]+/0x[0-9a-f]+)$")
_ALLOCATES = re.compile(
    r"(?:save_stack_trace|stack_trace_save|set_track|kmemleak_|_*(?:alloc|create)_object|slab_post_"
    r"|_*k[mvz]*alloc|_*kmem_cache_alloc|_*alloc_(?:skb|pages)|alloc_skb_with|kmalloc_reserve"
    r"|sk_stream_alloc|sock_kmalloc|krealloc|kmemdup|kstrdup|build_skb|_*vmalloc|pcpu_alloc)"
)
"""Functions that ask for memory for others, and those that kmemleak is in."""
_FATAL = re.compile(_TIME.pattern + r"(?:BUG: |kernel BUG|Oops|general protection)")
_PANIC = re.compile(_TIME.pattern + r"Kernel panic")
"""What ends a kernel after its own warning is no other one."""
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
"""Functions that write the warning."""
_WHO = re.compile(r",? CPU#\d+: .*$|CPU: \d+ (?:UID: \d+ )?PID: \d+ ")


def parse_warnings(console: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the title and the first lines of each warning on a console, or in dmesg(1)'s output."""
    lines = [line.rstrip() for line in console.splitlines()]
    place = 0
    while place < len(lines):
        if leak := _LEAK.match(lines[place]):
            about = _tell_leak(lines[place + 1 : place + _MOST_TRACE])
            yield f"kmemleak: {leak[1]} bytes leaked{_who_asked(about)}", about[:MOST_LINES]
            place += 1
            continue
        if not _BEGIN.match(lines[place]):
            place += 1
            continue
        end = _end_of(lines, place)
        said = [_TIME.sub("", line) for line in lines[place:end]]
        told = dict.fromkeys(line.strip() for line in said if _tells(line))
        yield _WHO.sub("", said[0]), tuple(told)[:MOST_LINES]
        place = end


def _end_of(lines: Sequence[str], begin: int) -> int:
    """Return where a warning ends that has begun: by its own word, or where another begins."""
    fatal = _FATAL.match(lines[begin])
    for place in range(begin + 1, min(begin + _MOST_TRACE, len(lines))):
        follows = _BEGIN.match(lines[place]) and not (fatal and _PANIC.match(lines[place]))
        if _END.match(lines[place]) or follows:
            return place
    return min(begin + _MOST_TRACE, len(lines))


def _tell_leak(lines: Sequence[str]) -> tuple[str, ...]:
    """Return what kmemleak says of an object whose lines these are, without its contents."""
    told = []
    for line in lines:
        said = _OF_LEAK.match(line)
        if not said:
            break
        traced = _TRACED.match(said[1])
        text = traced[1] if traced else said[1]
        if not _CONTENTS.match(text) and not (traced and _ALLOCATES.match(text)):
            told.append(text)
    return tuple(told)


def _who_asked(told: Sequence[str]) -> str:
    """Return which function allocated what leaked, if that is known."""
    function = next((line for line in told if _TRACED.match(line)), None)
    return f", allocated in {function}" if function else ""


def _tells(line: str) -> bool:
    """Return whether a line says something to a reader: no rulers, stacks or bare addresses."""
    noise = (_RULER, _NOISE, _WORDS_OF_STACK, _NAMELESS, _PRINTS)
    return not any(pattern.match(line) for pattern in noise)
