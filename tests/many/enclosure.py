"""Enclosures of daemons: what one starts ends with it, also what went into a session of its own."""

from __future__ import annotations

import pwd
from pathlib import Path

from testbed.base import places


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
