"""Every published table and figure, rebuilt from the records of its experiment.

To add one: a module here with ``rebuild(results, reference) -> Rebuilt``, and its line below.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from analysis.publications.reference import Reference
from analysis.records.cells import experiment_of
from analysis.records.results import Results

if TYPE_CHECKING:
    from analysis.rebuilt.rebuilt import Rebuilt

BY_REFERENCE = {
    "fastopen-table1": "table1",
    "fastopen-handshake": "handshake",
    "cs244-reuse": "cs244",
    "tum-initcwnd": "tum_initcwnd",
    "tum-website": "tum_website",
}
BY_EXPERIMENT = {"reuse-initcwnd": "reuse_map"}
"""Experiments of which nothing is published."""


def rebuild(results: Results, reference: Reference | None) -> Rebuilt | None:
    """Rebuild what ``reference`` publishes, or the maps of an experiment without a publication.

    What was not measured stays empty and is named; ``None`` means that nothing is known to
    rebuild from such an experiment.

    Raises:
        ConfigurationError: the manifest is not a run's.
    """
    if reference is not None:
        module = BY_REFERENCE.get(reference.name)
    else:
        module = BY_EXPERIMENT.get(str(experiment_of(results.manifest).get("name")))
    if module is None:
        return None
    # Imported here: each brings pandas and Altair, which a command without figures need not load.
    build: Callable[[Results, Reference | None], Rebuilt]
    build = import_module(f"{__name__}.{module}").rebuild
    return build(results, reference)
