"""A lab that a busy machine has, too: tests run on those, and do not ask how exact the link is.

The calibration's bounds are for idle machines.  Whether the link keeps them is told by the bench.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from testbed.base import sources
from testbed.lab import exactness
from testbed.lab.exactness import HOST, Exactness
from testbed.model.trace import Trace
from testbed.root.cache import Root
from testbed.setup import bundle as bundles
from testbed.setup.bundle import Bundle, make_bundle

PATIENT = Exactness(rtt_ms=1e6, rate_pct=1e6, buffer_packets=1e6, train_ms=HOST.train_ms)
NEVER = replace(PATIENT, rtt_ms=0.0)
"""What no link that was ever measured is."""


def make_patient_bundle(
    cache: Path,
    native: Path,
    root: Root,
    own: Mapping[str, Path] | None = None,
    traces: Mapping[str, Trace] | None = None,
    *,
    exactness_wanted: Exactness = PATIENT,
) -> Bundle:
    """Make a bundle (see ``make_bundle``) whose lab is no more exact in real time than wanted."""
    exact = Path(exactness.__file__)
    name = f"testbed/{exact.relative_to(sources.PACKAGE)}"
    contents = bundles._contents(native)
    assert name in contents
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patient = Path(folder, exact.name)
        patient.write_text(f"{exact.read_text()}HOST = {exactness_wanted!r}\n")
        patch.setattr(bundles, "_contents", lambda native: {**contents, name: patient})
        return make_bundle(cache, native, root, own, traces)
