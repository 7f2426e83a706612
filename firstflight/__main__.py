"""``python -m firstflight``: the command line, which a signal can end from its first moment on."""

from __future__ import annotations

import sys

from testbed.base.interrupt import leave_on_signals

if __name__ == "__main__":
    leave_on_signals()
    # Imported here: it takes most of a second, in which a signal must not end in a traceback.
    from firstflight.joined import main

    sys.exit(main())
