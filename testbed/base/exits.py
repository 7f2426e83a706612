"""Exit codes of programs that are no command line: the start, and what it calls.

The command line has more to say of an error (``firstflight/cli/exits.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from testbed.base.errors import EXIT_INTERRUPTED, EXIT_OK, TestbedError
from testbed.base.interrupt import raising


def exit_code_of(work: Callable[[], int | None], say: Callable[[str], None]) -> int:
    """Do ``work`` and return its exit code, 0 where it has none; say how it ended otherwise."""
    try:
        with raising():
            code = work()
    except TestbedError as error:
        say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    return EXIT_OK if code is None else code
