"""Published tables and figures, rebuilt from the records of their experiments.

The module NAME (with underscores) rebuilds ``published/reference/NAME.csv``, by its function
``rebuild(results, reference) -> Rebuilt``.  Without such a module ``beside`` shows each stated
value beside ours.  The figures of an experiment without a publication are rebuilt by the module of
the experiment's name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from analysis.published.names import find_metrics, refuse_unknown
from analysis.published.reference import FOLDER, Reference, read_reference
from analysis.records.cells import cells_of, experiment_of, varying_axes
from analysis.records.results import Results
from analysis.words import axis_name, axis_value, count

if TYPE_CHECKING:
    from analysis.reproductions.rebuilt import Rebuilt

BESIDE = f"{__name__}.beside"
LISTED = 6


def check_reference(name: str, kind: str, names: Mapping[str, Collection[str]]) -> None:
    """See that the publication ``name`` can be shown beside trials of ``kind``.

    ``names`` are those that there are here, by what they name, such as ``page``.

    Raises:
        ConfigurationError: with every problem of its files.
    """
    reference = read_reference(name)
    refuse_unknown(reference, names)
    if _find_module(name) is None:
        find_metrics(reference, kind)


def rebuild(results: Results, reference: Reference | None) -> Rebuilt | None:
    """Rebuild what ``reference`` publishes, or the figures of an experiment without a publication.

    Returns ``None`` where no module rebuilds it.  What was not measured stays empty, and is named
    below each table and figure.

    Raises:
        ConfigurationError: the manifest is not a run's.
    """
    module = name_module(results, reference)
    if module is None and reference is not None:
        module = BESIDE
    if module is None:
        return None
    # Imported here: each imports pandas, which a report without them does not need.
    build: Callable[[Results, Reference | None], Rebuilt] | None
    build = getattr(import_module(module), "rebuild", None)
    return build(results, reference).with_note(name_absent(results)) if build else None


def name_module(results: Results, reference: Reference | None) -> str | None:
    """Return the name of the module that rebuilds it, if there is one.

    Raises:
        ConfigurationError: the manifest is not a run's.
    """
    name = reference.name if reference else str(experiment_of(results.manifest).get("name"))
    module = _find_module(name)
    if reference is None and (FOLDER / f"{name}.csv").is_file():
        return None  # the module compares with the publication, which the experiment leaves out
    return module


def _find_module(name: str) -> str | None:
    module = f"{__name__}.{name.replace('-', '_')}"
    if not name.replace("-", "").isalnum() or find_spec(module) is None:
        return None
    return module


def name_absent(results: Results) -> str:
    """Return one sentence about the cells without any proven load; empty if there are none."""
    cells = cells_of(results)
    absent = [cell for cell in cells if not cell.proven]
    if not absent:
        return ""
    names = varying_axes(cells) or ("page",)
    listed = "; ".join(
        ", ".join(f"{axis_name(n)} {axis_value(n, cell.axes.get(n))}" for n in names)
        + f": {cell.status.replace('_', ' ')}"
        for cell in absent[:LISTED]
    )
    more = f"; and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
    have = "has" if len(absent) == 1 else "have"
    return f"{len(absent):,} of {count(len(cells), 'cell')} {have} no proven load ({listed}{more})."
