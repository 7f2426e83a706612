"""Errors that a user can meet, each with what was tried, where, and the remedy; exit codes.

One place (``cli.main``) turns ``TestbedError.exit_code`` into the process's exit code.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

EXIT_OK = 0
"""Everything was done, and all of it counts."""
EXIT_OUT_OF_TOLERANCE = 1
"""A lab out of tolerance, an unproven trial, or a comparison that found a difference."""
EXIT_CONFIGURATION = 2
"""The request makes no sense: command line, experiment file, page, or results that must not be
compared."""
EXIT_MISSING = 3
"""A tool, a feature of the kernel or a privilege is missing."""
EXIT_INCOMPLETE = 4
"""Trials failed, timed out or did not run, or results could not be written; `--resume` goes on."""
EXIT_INCONCLUSIVE = 5
"""Too few repetitions to tell: collect more."""
EXIT_INTERRUPTED = 130
"""Interrupted, by Ctrl-C, SIGTERM or SIGHUP; `--resume` goes on."""
BY_GRAVITY = (
    EXIT_OK,
    EXIT_INCONCLUSIVE,
    EXIT_OUT_OF_TOLERANCE,
    EXIT_MISSING,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
)
"""Exit codes of runs, the gravest last: what a further run can mend outweighs what it cannot."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What write(2) says where a disk, or the user's share of it, is full."""


def worst_exit(codes: Iterable[int]) -> int:
    """Return the gravest of the exit codes of runs."""
    return max(codes, key=BY_GRAVITY.index)


class TestbedError(Exception):
    """Base class: a message for people and an exit code for programs."""

    exit_code = EXIT_INCOMPLETE
    __test__ = False  # not a test class, whatever pytest thinks of the name


class ConfigurationError(TestbedError):
    """The request makes no sense; ``problems`` holds all of them, not only the first."""

    exit_code = EXIT_CONFIGURATION

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class MissingError(TestbedError):
    """A tool, a kernel feature or a privilege is missing."""

    exit_code = EXIT_MISSING


class LabError(TestbedError):
    """The lab could not be built or does not hold what was asked."""

    exit_code = EXIT_OUT_OF_TOLERANCE


class StorageError(TestbedError):
    """Results could not be written; what was written before is intact."""

    exit_code = EXIT_INCOMPLETE


@contextmanager
def storing(what: str, remedy: str = "") -> Iterator[None]:
    """Have an OSError of the block say what could not be done, as ``write FILE``, and the remedy.

    Raises:
        StorageError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        how = f"; {remedy}" if remedy else ""
        raise StorageError(f"cannot {what}: {error.strerror or error}{how}") from error


@contextmanager
def caching(what: str) -> Iterator[None]:
    """Have an OSError of the block say which part of the cache could not be written.

    Raises:
        StorageError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        room = "; make room, and try again" if error.errno in NO_ROOM else ""
        raise StorageError(f"cannot {what}: {error}{room}") from error


class TrialError(TestbedError):
    """A trial that ended badly; becomes a Record with this reason, never a crash of the run."""
