"""Enclosures of daemons: what one starts ends with it, also what went into a session of its own."""

from __future__ import annotations

import pwd
from pathlib import Path

from testbed.base import places

_CLOSED = 0o001


def enclosed_argv(*argv: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command as the first process below bwrap(1), with an own /proc, for root.

    The process ids are the enclosure's: the kernel ends all of them with its first.  ``options``
    are bwrap's, and say what else is not the machine's.
    """
    private = ("--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--proc", "/proc")
    return ("bwrap", *private, *options, "--", *argv)


def with_home(home: Path) -> tuple[str, ...]:
    """Options by which ``home`` is root's home, and the tree and its cache are where they were.

    The tree is in ``firstflight`` there as well, as if somebody had cloned it.
    """
    kept = (str(places.cache().resolve()), str(places.ROOT))
    binds = [word for path in kept for word in ("--bind", path, path)]
    root = pwd.getpwuid(0).pw_dir
    cloned = ("--bind", str(places.ROOT), f"{root}/firstflight")
    return ("--bind", str(home), root, *binds, *cloned)


def open_to_all(*kept: Path) -> tuple[str, ...]:
    """Options by which every user reaches the folders ``kept``, and nothing else of root's beside.

    The first folder on the way to one that only its owner may enter is hidden by an empty one.
    """
    resolved = [path.resolve() for path in kept]
    hidden = {found for path in resolved if (found := _first_closed(path)) is not None}
    below = [path for path in resolved if any(path.is_relative_to(one) for one in hidden)]
    ways = {way for path in below for way in path.parents if hidden & set(way.parents)}
    opened = ("--perms", "0755")
    return (
        *(word for path in sorted(hidden) for word in (*opened, "--tmpfs", str(path))),
        *(word for path in sorted(ways) for word in (*opened, "--dir", str(path))),
        *(word for path in below for word in ("--bind", str(path), str(path))),
    )


def _first_closed(path: Path) -> Path | None:
    """The first folder from / on that others may not enter."""
    ways = (*reversed(path.parents), path)
    return next((way for way in ways if not way.stat().st_mode & _CLOSED), None)
