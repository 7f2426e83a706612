"""Verbs that carry results between machines: ``pack``, and ``unpack``, which can repeat them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from pathlib import Path

import click

from analysis.verdicts.compare.comparison import EVERYTHING, CompareOptions
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from firstflight.cli.new_run import run_new
from firstflight.cli.reports import read_width
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    ConfigurationError,
    StorageError,
    worst_exit,
)
from testbed.base.heartbeat import repeating
from testbed.base.units import format_bytes, format_count
from testbed.experiment.config import Catalogue
from testbed.experiment.recheck import check_experiment
from testbed.pages.catalogue import list_pages
from testbed.results.folder import refuse_explicit, refuse_latest
from testbed.results.manifest import Manifest
from testbed.results.records import read_records
from testbed.runner.launch import Prepare, RunLane, find_lanes
from testbed.setup.root_import import import_roots
from testbed.setup.root_pack import is_pack
from wings.packs.artifact import pack_artifact, results_in, roots_of
from wings.packs.contents import PAGES_FOLDER
from wings.packs.packing import pack_results, unpack_results

_log = log.logger(__name__)
_SUFFIXES = (".zip", ".tar")
"""Of a pack of results, and of one with its root."""
_path = click.Path(path_type=Path)


@click.command()
@click.argument("results", metavar="RESULTS", type=_path)
@click.option("-o", "output", type=_path, metavar="FILE",
              help="The pack; default: the folder's name and .zip or .tar, here.")  # fmt: skip
@click.option("--license", "license_", metavar="NAME",
              help="The licence that you share these results under: an SPDX identifier, or its "
                   "address.  Without it the pack says that none is stated.")  # fmt: skip
@click.option("--with-root", is_flag=True,
              help="Include all that made the results, such as root and source.")  # fmt: skip
@click.option("--replace", is_flag=True, help="Replace the file if it is there.")
@pass_services
def pack(
    services: Services, /, results: Path, output: Path | None, license_: str | None,
    with_root: bool, replace: bool,
) -> int:  # fmt: skip
    """Write the results in RESULTS to one file, which any machine can read, check and re-run.

    It is an RO-Crate in a ZIP archive.  It includes the pages that were loaded: check that you may
    share them.

    With --with-root it is a TAR archive that also has the output of `root export` and the source,
    so that a machine without a network can repeat the run.
    """
    file = output or Path(f"{results.resolve().name}{_SUFFIXES[with_root]}")
    cache = services.cache()
    with places.using_cache(cache), repeating(_log.info) as progress:
        if with_root:
            written = pack_artifact(
                results, file, cache, progress, license_=license_, replace=replace
            )
        else:
            written = pack_results(
                results, file, places.PAGES, cache, license_=license_, replace=replace
            )
    contents = written.contents
    size, count = format_bytes(file.stat().st_size), len(contents.files)
    pages = f" with the pages {', '.join(contents.pages)}" if contents.pages else ""
    click.echo(f"{file}: {format_count(count, 'file')}{pages}, {size}")
    click.echo(f"SHA-256 {written.sha256}")
    for note in contents.notes:
        click.echo(note)
    if contents.missing:
        click.echo("It CANNOT be re-run on another machine, because parts of it are not here:")
        for name, why in sorted(contents.missing.items()):
            click.echo(f"  {name}: {why}")
    else:
        name = shlex.quote(file.name)
        first = f"./run.sh import {name} && " if with_root else ""
        click.echo(f"On another machine: {first}./run.sh unpack {name} --rerun")
    return EXIT_OK


@click.command()
@click.argument("file", metavar="FILE", type=_path)
@click.argument("directory", metavar="[DIR]", required=False, type=_path)
@click.option("--replace", is_flag=True,
              help="Replace the folder if it is there, and holds results or nothing.")  # fmt: skip
@click.option("--rerun", is_flag=True,
              help="Run the experiment again, with the packed pages, and compare.")  # fmt: skip
@click.option("-o", "output", type=_path, metavar="DIR",
              help="With --rerun: the new results; default: results/<UTC>-NAME.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 1024),
              help="With --rerun: trials at once; default: one for each core.")  # fmt: skip
@pass_services
def unpack(
    services: Services, /, file: Path, directory: Path | None, replace: bool, rerun: bool,
    output: Path | None, jobs: int | None,
) -> int:  # fmt: skip
    """Unpack the results in FILE to DIR, by default a folder of its name in results/.

    Every name, size and digest is checked, and the folder appears whole or not at all.  It is a
    results folder: `report`, `compare` and the notebooks read it.

    With --rerun the experiment is run again as the manifest says, and compared with what was
    packed: SAME, or what differs.  Exit code as of `compare`: 0 same, 1 different, 5 inconclusive.
    """
    if not rerun and (output or jobs):
        given = " and ".join(
            option for option, value in (("-o", output), ("--jobs", jobs)) if value is not None
        )
        raise ConfigurationError([f"{given}: only with --rerun"])
    stem = file.stem if file.suffix in _SUFFIXES else file.name
    folder = directory or services.results / stem
    refuse_latest(services.results, folder)
    if output is not None:
        _refuse_output(services.results, output, folder)
    with results_in(file) as packed:
        count = unpack_results(packed, folder, replace=replace)
    click.echo(f"{format_count(count, 'file')} unpacked to {folder}")
    if not rerun:
        click.echo(f"Look at it: ./run.sh report {shlex.quote(str(folder))}")
        return EXIT_OK
    again = shlex.join(["./run.sh", "unpack", str(file), str(folder), "--replace", "--rerun"])
    old = find_lanes(folder)
    wanted = roots_of([*old.values()]) if is_pack(file) else {}
    _refuse(folder, old, services.catalogue(), wanted)
    with places.using_cache(services.cache()), repeating(_log.info) as progress:
        roots = import_roots(file, wanted, services.cache(), progress) if wanted else {}
    prepare = services.prepare_from(folder / PAGES_FOLDER, roots)
    jobs = jobs or len(os.sched_getaffinity(0))
    return _rerun(services, folder, old, prepare, output, jobs, again)


def _refuse_output(results: Path, output: Path, folder: Path) -> None:
    """Refuse a place for new results where some are, or the packed ones will be.

    Raises:
        ConfigurationError: it is one.
    """
    place = folder.resolve()
    if output.resolve() in (place, *place.parents):
        raise ConfigurationError(
            [f"-o {output}: the packed results go to {folder}; name another folder for the new"]
        )
    refuse_explicit(results, output)


def _rerun(
    services: Services, folder: Path, old: dict[Path, Manifest], prepare: Prepare,
    output: Path | None, jobs: int, again: str,
) -> int:  # fmt: skip
    """Run what was unpacked to ``folder`` again, and compare; ``again`` is the command for that."""
    experiments = tuple(manifest.experiment for manifest in old.values())
    run = run_new(services, experiments, output, prepare=prepare, jobs=jobs)
    if run.interrupted:
        _log.error("interrupted: %s; start again: %s", run.tallies[-1].sentence(), again)
        return EXIT_INTERRUPTED
    for lane in run.lanes:
        services.reports.write(lane.folder)
    code = worst_exit(_compare(*each) for each in zip(old, run.lanes, strict=True))
    _log.info("packed results in %s, the re-run in %s", folder, run.folder)
    return code


def _compare(packed: Path, lane: RunLane) -> int:
    """Print how the re-run of one results folder compares, and return the exit code of that.

    Another machine may have other versions of programs: they are named, and load times decide.
    """
    comparison = compare_results(packed, lane.folder, CompareOptions(across=EVERYTHING))
    click.echo(render_text(comparison, read_width()).rstrip("\n"))
    return comparison.exit_code


def _refuse(
    folder: Path, lanes: dict[Path, Manifest], catalogue: Catalogue, roots: Collection[str]
) -> None:
    """Refuse what cannot be re-run here, with the ``roots`` that came along.

    Raises:
        ConfigurationError: every reason.
    """
    packed = frozenset(page.name for page in list_pages(folder / PAGES_FOLDER))
    problems = []
    for lane, manifest in lanes.items():
        try:
            read_records(lane)
        except StorageError as error:  # which comparing would find after all trials
            problems.append(str(error))
        wanted = set(manifest.experiment.pages)
        names = Catalogue(packed.union(wanted), catalogue.clients, catalogue.references,
                          catalogue.kernels, catalogue.libraries,
                          roots=catalogue.roots.union(roots))  # fmt: skip
        problems += [f"{lane}: {each}" for each in check_experiment(manifest.experiment, names)]
        problems += [
            f"{lane}: the pack has no page {page!a}: it was gone when the pack was made"
            for page in sorted(wanted - packed)
        ]
    if problems:
        raise ConfigurationError([*problems, f"{folder} was unpacked and cannot be re-run"])
