"""Entry point of the command line, which a signal can end from its first moment on."""

from __future__ import annotations

import gc
import signal
import sys

from testbed.base.interrupt import SIGNALS, leave_on_signals

if __name__ == "__main__":
    leave_on_signals()
    # Imported here: it takes most of a second, in which a signal must not end in a traceback.
    from firstflight.cli.main import main
    from firstflight.cli.services import program_services

    code = main(sys.argv[1:], program_services())
    # It is all done: while Python takes itself down, a signal would end it without its status.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    gc.freeze()  # the process ends, so what it leaves need not be searched for cycles
    sys.exit(code)
