"""Node and the browser driver (Puppeteer), which only recordings take: set up by the first of them.

No load runs node, and Debian's npm brings hundreds of packages: a machine that never records is
spared both.  ``bootstrap/recorder.sh`` installs and builds; here it is asked to.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from testbed.base import places, proc
from testbed.base.errors import EXIT_INTERRUPTED, EXIT_MISSING, MissingError, TestbedError
from testbed.base.interrupt import SignalInterrupt
from testbed.client.program import Program

RECORDING = (Program("node", packages="nodejs >= 18, npm"),)
"""What a recording runs besides the browser: Puppeteer, which npm installs from its lock file."""
SCRIPT = places.ROOT / "bootstrap" / "recorder.sh"
_FAILED = (
    "recording takes node and a browser driver, which could not be set up: "
    "do what the lines above say, then try again"
)


def set_up_recording() -> Path:
    """Have node, npm and the browser driver on this machine; return the driver's folder.

    It may take minutes and ask for a password on the terminal, so it comes before anything that
    draws there or waits.  Development has all of it set up in advance (``FIRSTFLIGHT_JS``).

    Raises:
        MissingError: a package is missing and may not be installed; standard error names it.
        TestbedError: the driver could not be built.
        KeyboardInterrupt: the script was interrupted.
    """
    folder = os.environ.get("FIRSTFLIGHT_JS")
    return Path(folder) if folder else _set_up(SCRIPT)


@cache
def _set_up(script: Path) -> Path:
    """Run ``script``, once for all recordings of this process."""
    completed = proc.run_attached((str(script),))
    if completed.returncode == EXIT_INTERRUPTED:
        raise SignalInterrupt
    if completed.returncode != 0:
        raise (MissingError if completed.returncode == EXIT_MISSING else TestbedError)(_FAILED)
    return Path(completed.stdout.rstrip("\n"))


def find_driver() -> Path | None:
    """Return the driver's folder, and set nothing up; ``None``: it is not there, or damaged."""
    folder = os.environ.get("FIRSTFLIGHT_JS")
    if folder:
        return Path(folder) if Path(folder).is_dir() else None
    completed = proc.run((str(SCRIPT), "--find"), check=False)
    return Path(completed.stdout.rstrip("\n")) if completed.returncode == 0 else None
