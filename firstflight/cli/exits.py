"""Exit codes: the one place that runs a command line and turns its errors into messages."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from testbed.base import log
from testbed.base.errors import (
    EXIT_CONFIGURATION,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    NO_ROOM,
    ConfigurationError,
    TestbedError,
)
from testbed.base.interrupt import raising

_log = log.logger(__name__)


EXIT_SKIP = 125
"""What git bisect run takes for a commit that cannot be judged (git-bisect(1))."""
_VERDICTS = (EXIT_OK, EXIT_OUT_OF_TOLERANCE, EXIT_SKIP)


def tell_git_bisect(code: int) -> int:
    """Return the exit code by which git bisect run knows a verdict from a mistake of the user's.

    It takes 1 to 124 for a bad commit; from 128 on it stops.
    """
    return code if code in _VERDICTS else 128 + code


def run_command(command: click.Command, **context: Any) -> int:
    """Run ``command`` and return the process's exit code; ``context`` goes to click's ``main``."""
    log.configure()
    try:
        with raising():
            result = command.main(standalone_mode=False, **context)
    except ConfigurationError as error:
        for problem in error.problems:
            _log.error("%s", problem)
        return error.exit_code
    except TestbedError as error:
        _log.error("%s", error)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return EXIT_CONFIGURATION
    except (KeyboardInterrupt, click.Abort):
        _log.error("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone, which is its right; say nothing more to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _log.error("%s: %s; free space, then try again", error.filename or "disk", error.strerror)
        return EXIT_INCOMPLETE
    return result if isinstance(result, int) else EXIT_OK
