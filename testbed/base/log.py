"""Messages for people, on standard error only, so that standard output stays for results."""

from __future__ import annotations

import logging
import sys

ROOTS = ("firstflight", "testbed", "wings")
_PREFIX = {logging.DEBUG: "debug: ", logging.INFO: "", logging.WARNING: "warning: "}


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _PREFIX.get(record.levelno, "error: ") + record.getMessage()


class _StderrHandler(logging.Handler):
    """Writes to whatever ``sys.stderr`` is now, so that a live display may replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except OSError:
            self.handleError(record)


def configure(*, verbose: bool = False) -> None:
    """Send our messages to standard error; calling it again replaces the handler."""
    handler = _StderrHandler()
    handler.setFormatter(_PlainFormatter())
    for root in map(logging.getLogger, ROOTS):
        root.handlers = [handler]
        root.propagate = False
        root.setLevel(logging.DEBUG if verbose else logging.INFO)


def logger(name: str) -> logging.Logger:
    """Return the logger of module ``name`` (pass ``__name__``)."""
    return logging.getLogger(name)
