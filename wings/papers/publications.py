"""Publications as the engine asks for them: found by name, checked, and rebuilt from records.

The module NAME (with underscores) in ``reproductions`` rebuilds ``published/reference/NAME.csv``,
by its function ``rebuild(results, reference) -> Rebuilt``.  Without such a module ``beside`` shows
each stated value beside ours.  The figures of an experiment without a publication are rebuilt by
the module of the experiment's name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.util import find_spec

from analysis.records.cells import cells_of, experiment_of, varying_axes
from analysis.records.results import Results
from analysis.report.publications import Rebuilt
from analysis.words import axis_name, axis_value, count
from testbed.base import places
from testbed.model import in_real_time
from wings.papers import REFERENCES
from wings.papers.published.names import find_metrics, refuse_unknown
from wings.papers.published.reference import Reference, read_reference

MODULES = "wings.papers.reproductions"
BESIDE = f"{MODULES}.beside"
LISTED = 6


def check(name: str, kind: str, names: Mapping[str, Collection[str]]) -> None:
    """See that the publication ``name`` can be shown beside trials of ``kind``.

    ``names`` are those that there are here, by what they name, such as ``page``.

    Raises:
        ConfigurationError: with every problem of its files.
    """
    reference = read_reference(name)
    refuse_unknown(reference, names)
    if _find_module(name) is None:
        find_metrics(reference, kind)


def find(results: Results) -> Reference | None:
    """Return the publication that the experiment names, if it names one.

    Of results in real time it has no reasons that are of a model's making.

    Raises:
        ConfigurationError: it names one that does not exist, or that names no page there is.
    """
    experiment = experiment_of(results.manifest)
    name = experiment.get("reference")
    if not name:
        return None
    reference = read_reference(str(name))
    pages = {str(cell.axes.get("page")) for cell in cells_of(results)}
    pages |= {folder.name for folder in places.PAGES.iterdir()}
    refuse_unknown(reference, {"page": pages})
    real = in_real_time(str(experiment.get("kernel")))
    return reference.in_real_time() if real else reference


def rebuild(results: Results) -> Rebuilt | None:
    """Rebuild the publication that the experiment names, or its figures if it names none.

    Raises:
        ConfigurationError: it names one that cannot be read, or the manifest is not a run's.
    """
    return rebuild_as(results, find(results))


def rebuild_as(results: Results, reference: Reference | None) -> Rebuilt | None:
    """Rebuild what ``reference`` publishes, or the figures of an experiment without a publication.

    Returns ``None`` where no module rebuilds it.  What was not measured stays empty, and is named
    below each table and figure.

    Raises:
        ConfigurationError: the manifest is not a run's.
    """
    module = name_module(results, reference) or (BESIDE if reference else None)
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
    published = any((REFERENCES / f"{name}{end}").is_file() for end in (".csv", ".toml"))
    if reference is None and published:
        return None  # the module compares with the publication, which the experiment leaves out
    return _find_module(name)


def _find_module(name: str) -> str | None:
    module = f"{MODULES}.{name.replace('-', '_')}"
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
    listed = "; ".join(", ".join(f"{axis_name(n)} {axis_value(n, cell.axes.get(n))}"
                                 for n in names) + f": {cell.status.replace('_', ' ')}"
                       for cell in absent[:LISTED])  # fmt: skip
    more = f"; and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
    have = "has" if len(absent) == 1 else "have"
    return f"{len(absent):,} of {count(len(cells), 'cell')} {have} no proven load ({listed}{more})."
