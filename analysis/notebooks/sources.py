"""Where a notebook's numbers come from, and how its charts are shown without a network.

Importing this module makes charts appear in JupyterLab: docs/decisions/analysis-notebooks.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from analysis.plot.svg import VEGA_LITE, static
from analysis.records.cells import cells_of, experiment_of
from analysis.records.results import Results, read_results
from analysis.words import count
from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import read_lanes
from testbed.results.manifest import MANIFEST_FILE
from testbed.results.store import LATEST, read_manifest

VARIABLE = "FIRSTFLIGHT_RESULTS"
SAMPLES = Path(__file__).parents[1] / "samples"
RENDERER = "firstflight"
# JupyterLab 4 draws Vega-Lite 5 itself; Altair 6 says 6, which for these charts is the same.
SHOWN_MIME = "application/vnd.vegalite.v5+json"
SHOWN_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def open_results(
    experiment: str, latest: Path = places.RESULTS / LATEST, samples: Path = SAMPLES
) -> Results:
    """Read results of ``experiment`` and print which they are.

    They are in the folder that the environment variable FIRSTFLIGHT_RESULTS names, or in a folder
    of the experiment's name in that; else in ``latest`` if it holds this experiment; else they are
    the sample that ships with the repository.

    Raises:
        ConfigurationError: the folder that was named holds something else, there is no sample of
            that name (the message lists those that exist), or records must not be pooled.
        StorageError: the folder cannot be read.
    """
    folder, why = _choose(experiment, latest, samples)
    results = read_results(folder)
    print(describe_results(results, why))
    return results


def describe_results(results: Results, why: str) -> str:
    """Three lines: which folder and why, measured by what, and how much of it."""
    cells = cells_of(results)
    proven = [len(cell.proven) for cell in cells]
    ends = dict.fromkeys((min(proven, default=0), max(proven, default=0)))
    identity = results.identity
    clients = ", ".join(f"{name} {version}" for name, version in identity.clients.items())
    planned = sum(cell.planned for cell in cells)
    return "\n".join(
        (
            f"{experiment_of(results.manifest).get('name')}: {_shown(results.folder)} ({why})",
            f"{identity.kernel} kernel {identity.kernel_version}, client {clients or 'unknown'}, "
            f"of {results.manifest.get('created_utc', 'an unknown time')}",
            f"{sum(proven)} of {count(planned, 'load')} proven in {count(len(cells), 'cell')}, "
            f"n = {' to '.join(map(str, ends))} in each",
        )
    )


def render_chart(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The chart ``spec`` in the forms that a notebook may choose from: to turn about, and still.

    Nothing in them is fetched from a network.
    """
    still = vl_convert.vegalite_to_svg(static(spec), vl_version=VEGA_LITE, allowed_base_urls=[])
    return {
        SHOWN_MIME: {**spec, "$schema": SHOWN_SCHEMA},
        "image/svg+xml": still,
        "text/plain": str(spec.get("description", "chart")),
    }


alt.renderers.register(RENDERER, render_chart)
alt.renderers.enable(RENDERER)


def _choose(experiment: str, latest: Path, samples: Path) -> tuple[Path, str]:
    """The folder to read, and why this one."""
    named = os.environ.get(VARIABLE)
    if named:
        for folder in (Path(named) / experiment, Path(named)):
            if _held(folder) == experiment:
                return folder, f"named by {VARIABLE}"
        raise ConfigurationError(
            [f"{VARIABLE} names {named}, which holds {_held(Path(named))} and no folder "
             f"{experiment}; this notebook is about {experiment}: name results of that, or unset "
             f"{VARIABLE}"]
        )  # fmt: skip
    held = _held(latest)
    if held == experiment:
        return latest.resolve(), "results/latest"
    sample = samples / experiment
    if not (sample / MANIFEST_FILE).is_file():
        known = ", ".join(sorted(path.name for path in samples.iterdir() if path.is_dir()))
        raise ConfigurationError(
            [f"there are no results of {experiment}: results/latest holds {held}, and the samples "
             f"are {known or 'not there'}; ./run.sh run configs/{experiment}.toml makes some"]
        )  # fmt: skip
    return sample, f"the repository's sample; results/latest holds {held}"


def _held(folder: Path) -> str:
    """Which experiment is in ``folder``, in a word for a message where there is none."""
    if read_lanes(folder):
        return "several kernels' results"
    if not (folder / MANIFEST_FILE).is_file():
        return "nothing"
    return str(experiment_of(read_manifest(folder)).get("name"))


def _shown(folder: Path) -> str:
    inside = folder.is_relative_to(places.ROOT)
    return str(folder.relative_to(places.ROOT) if inside else folder)
