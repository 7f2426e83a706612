"""Traces of a bundle: where it has them, as the kernel and the program between TAPs read them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from testbed.model import LinkSpec
from testbed.model.trace import RunningTrace, Trace, traced

TRACES = Path(__file__).resolve().parents[3] / "traces"
"""Where a bundle has traces as the kernel reads them, beside the package."""


@cache
def read_trace(name: str) -> Trace:
    """Return the trace that the bundle has under ``name``.

    Raises:
        OSError: there is none.
    """
    return Trace.unpack((TRACES / name).read_bytes())


def idle_traces(spec: LinkSpec) -> dict[str, RunningTrace]:
    """Return the traces of ``spec`` by direction, as they run before a load."""
    return {way: RunningTrace(read_trace(name)) for way, name in traced(spec).items()}
