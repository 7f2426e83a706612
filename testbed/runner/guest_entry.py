"""Entry point of a guest: it performs the trial in /ff/out with the bundle that this file is in.

Its argument, if it has one, is the opening of the client of the page load that the trial is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

READY = 3


def main() -> None:
    """Get ready, wait for the trial, and perform it; paths are those of ``native/init.c``."""
    bundle = Path("/ff/bundle")
    sys.path.insert(0, str(bundle))
    from testbed.kinds.workspace import Site
    from testbed.model import parse_opening
    from testbed.runner.trial import import_common, prepared
    from testbed.runner.trial import main as perform

    import_common()
    scratch = Path("/tmp/trial")  # noqa: S108  a guest's /tmp is its own tmpfs
    scratch.mkdir()
    site = Site(Path("/ff/page"), Path("/ff/out"), bundle, scratch)
    with prepared(parse_opening("".join(sys.argv[1:2])), site) as site:
        await_trial()
        perform(site)


def await_trial() -> None:
    """Say that all is ready that does not depend on the trial, and wait until there is one.

    In between the guest may be saved, and others go on from there: other trials of the same seed
    and opening.
    """
    os.write(READY, b"\n")
    os.close(READY)
    os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
