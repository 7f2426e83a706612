"""Determinism: equal boots for every client on every regular kernel, captures included."""

from __future__ import annotations

from collections.abc import Callable

from bench.result import Result, judge
from bench.work import Work
from testbed.kernel import REGULAR_VERSIONS
from testbed.way.prepare import prepare_determinism

CLIENTS = ("chromium", "wget2", "graph")
BOOTS = 20
QUICK_BOOTS = 3


def measurements() -> dict[str, Callable[[Work], Result]]:
    """Return one measurement for each client and kernel, by its name."""
    return {
        f"determinism-{client}-{version}": _measurement(client, version)
        for version in REGULAR_VERSIONS
        for client in CLIENTS
    }


def _measurement(client: str, version: str) -> Callable[[Work], Result]:
    def measure(work: Work) -> Result:
        boots = QUICK_BOOTS if work.quick else BOOTS
        parted = prepare_determinism(boots, client, version, work.machine.cores)
        return Result(
            name=f"determinism-{client}-{version}",
            asked=f"{BOOTS} of {BOOTS} boots equal",
            measured=f"{boots - len(parted)} of {boots} equal",
            verdict=judge(not parted, in_full=boots == BOOTS),
            n=boots,
            how=f"wikipedia at 100 ms with Fast Open on kernel {version}, "
            f"{work.machine.cores} boots at once: capture, HAR, load, proof and calibration "
            "of each against the first's",
            details={"differences": list(parted)},
        )

    return measure
