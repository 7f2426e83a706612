"""Published tables and figures, rebuilt from the records of their experiments.

``publications/reference/NAME.csv`` is rebuilt by the module here of the same name with underscores,
by its function ``rebuild(results, reference) -> Rebuilt``; an experiment that refers to no
publication, by the module of its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from analysis.publications.reference import FOLDER, Reference
from analysis.records.cells import experiment_of
from analysis.records.results import Results

if TYPE_CHECKING:
    from analysis.rebuilt.rebuilt import Rebuilt


def rebuild(results: Results, reference: Reference | None) -> Rebuilt | None:
    """Rebuild what ``reference`` publishes, or the figures of an experiment without a publication.

    Returns ``None`` where no module rebuilds it.  What was not measured stays empty and is named.

    Raises:
        ConfigurationError: the manifest is not a run's.
    """
    name = reference.name if reference else str(experiment_of(results.manifest).get("name"))
    module = f"{__name__}.{name.replace('-', '_')}"
    if not name.replace("-", "").isalnum() or find_spec(module) is None:
        return None
    if reference is None and (FOLDER / f"{name}.csv").is_file():
        return None  # the module compares with the publication, which the experiment leaves out
    # Imported here: each brings pandas and Altair, which a command without figures need not load.
    build: Callable[..., Rebuilt | None] | None
    build = getattr(import_module(module), "rebuild", None)
    return build(results, reference) if build else None
