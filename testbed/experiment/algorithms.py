"""Congestion control of an experiment, held against what its kernels have before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.base.suggest import did_you_mean
from testbed.model import Experiment, Linked
from testbed.model.traffic import NO_TRAFFIC, parse_traffic


def find_unknown(experiment: Experiment, known: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a sentence for each algorithm that a kernel of ``experiment`` does not have.

    ``known`` has the algorithms of pinned kernels by version; what others have shows when they run.
    """
    versions = experiment.kernel_versions or (experiment.kernel_version,)
    asked = dict.fromkeys(
        ("tcp.congestion_control", spec.tcp.algorithm_of(end))
        for spec in experiment.conditions
        if isinstance(spec, Linked)
        for end in ("client", "server")
    )  # fmt: skip
    asked |= dict.fromkeys(
        ("traffic", neighbour.algorithm)
        for spec in experiment.conditions
        for neighbour in parse_traffic(getattr(spec, "traffic", NO_TRAFFIC))
        if neighbour.algorithm
    )
    for version in versions if experiment.kernel == "virtual" else ():
        for knob, name in asked:
            if name not in known.get(version, (name,)):
                near = did_you_mean(name, known[version])
                yield (
                    f"{knob}: the virtual kernel {version} has no {name!r}{near}; "
                    f"allowed: {', '.join(known[version])}, or a kernel of your own that has it "
                    "(wings/kernels/README.md)"
                )
