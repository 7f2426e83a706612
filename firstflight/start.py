"""Start of the program: help and typing errors first, then its Python packages, then the verb."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from testbed.base.interrupt import SIGNALS, leave_on_signals

GIT_BISECT_STOPS = 128
"""git bisect run takes 1 to 124 for a bad commit, and stops from here on (git-bisect(1))."""


def main() -> int:
    """Answer the command line, or go on as the program in the environment of its packages."""
    code = _start()
    if sys.argv[1:3] == ["kernel", "bisect-step"] and 0 < code < GIT_BISECT_STOPS:
        return GIT_BISECT_STOPS + code
    return code


def _start() -> int:
    leave_on_signals()
    # Imported here: a signal must not end in a traceback.
    from firstflight.usage import answer_first
    from testbed.base.exits import exit_code_of
    from testbed.base.heartbeat import repeating
    from testbed.base.places import cache
    from testbed.setup.python_packages import (
        MANY,
        RUN,
        ensure_packages,
        find_authorities,
        find_packages,
    )

    code = answer_first(sys.argv[1:])
    if code is not None:
        return code
    # The locked Python looks where Debian has them alone (SSL_CERT_FILE: OpenSSL).
    os.environ.setdefault("SSL_CERT_FILE", find_authorities())
    if sys.argv[1:2] == ["import"] or sys.argv[1:3] == ["root", "import"]:
        # The packages may be in the file.
        from testbed.setup.root_import import import_named

        return import_named(sys.argv[-1:])

    def set_up() -> None:
        with repeating(say) as progress:
            # Where they are missing, the verb says what for, and how to have them.
            many = find_packages(MANY, cache()) if is_store_elsewhere(os.environ) else None
            packages = many or ensure_packages(RUN, cache(), progress)
            python.append(str(packages / "bin" / "python"))

    python: list[str] = []
    if code := exit_code_of(set_up, say):
        return code
    # A signal waits until the program can tell it (testbed/base/interrupt.py), which is a moment.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    os.execv(python[0], (*python, "-P", "-m", "firstflight", *sys.argv[1:]))  # noqa: S606  no shell


def is_store_elsewhere(environment: Mapping[str, str]) -> bool:
    """Whether the store of results is on another machine."""
    scheme, is_address, _ = environment.get("FIRSTFLIGHT_STORE", "").partition("://")
    return bool(is_address) and scheme != "file"


def say(message: str) -> None:
    """Write a line about the start to standard error."""
    print(f"firstflight: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
