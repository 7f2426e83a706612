"""Pages of the site: the index, and one for each load and promise with copies of what it kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from analysis import plot
from analysis.records.cells import experiment_of
from analysis.records.frame import request_frame
from analysis.records.kept import find_kept
from analysis.records.results import Results
from analysis.report.drawings import Drawing
from analysis.report.evidence import calibrations, ecn_lines, hello_lines, trial_lines
from analysis.report.provenance import command_of, manifest_sections, revision_of
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.tables.summary import captures_of
from analysis.tables.table import make_table
from analysis.verdicts.compare.sentences import packet_lines
from analysis.words import count
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.units import format_bytes
from testbed.base.whole_folder import new_folder
from testbed.model import PageLoad, Record
from wings.papers.plot.visit import waterfall
from wings.papers.site.figure import draw_releases
from wings.papers.site.matrix import (
    Found,
    KernelColumn,
    Matrix,
    MatrixRow,
    attempt,
    name_of,
    read_matrix,
)
from wings.papers.site.steps import STEPS_FILE, ReleaseStep, find_steps, read_stated
from wings.scenarios.analysis.page import BAD, BADGES, make_entries
from wings.scenarios.analysis.promises import Lane, PromiseTable

HERE = Path(__file__).parent
INDEX = "index.html"
_PASSIVE = (".pcap", ".pcapng", ".har", ".hlog", ".log", ".json", ".gz")
"""Endings of files that are copied: results may be a stranger's, and no browser runs these."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a trial made; without a copy ``problem`` says why."""

    name: str
    sha256: str
    trial: str
    copy: str = ""
    size: str = ""
    problem: str = ""


def write_site(directories: Sequence[Path], out: Path, stated: Path | None = None) -> str:
    """Write the site of results folders into ``out``, which is new or empty; say what is in it.

    ``stated`` names the commits of steps; without it, ``steps.toml`` in any of the folders does.

    Raises:
        ConfigurationError: with all that is wrong in what is asked.
        StorageError: the site cannot be written; then there is none.
    """
    problems: list[str] = []
    if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
        problems.append(f"{out} is there and is no empty folder; choose another with -o OUT")
    beside = [directory / STEPS_FILE for directory in directories]
    files = [stated] if stated else [file for file in beside if file.is_file()]
    commits = attempt(partial(read_stated, files), problems)
    matrix = attempt(partial(read_matrix, directories), problems)
    if problems or commits is None or matrix is None:
        raise ConfigurationError(problems)
    steps, apart = find_steps(matrix, commits)
    try:
        with new_folder(out, replace=True) as scratch:
            kept = _write_cells(scratch, matrix)
            _write_index(scratch, matrix, steps, apart, kept)
    except OSError as error:
        raise StorageError(
            f"cannot write {out}: {error.filename or out}: {error.strerror}; make room, or choose "
            "another with -o OUT"
        ) from None
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    loads, promises = count(len(matrix.loads), "cell"), count(len(matrix.promises), "promise")
    kernels = count(len(matrix.columns), "kernel")
    return f"{kernels}, {loads}, {promises}, {count(len(steps), 'step')}; {format_bytes(size)}"


def _write_cells(site: Path, matrix: Matrix) -> set[str]:
    """Write the page of each load and promise; return the addresses of those with packets."""
    kept: set[str] = set()
    template = open_templates(HERE).get_template("cell.html.jinja")
    for row in (*matrix.loads, *matrix.promises):
        for place, found in enumerate(row.found):
            if found is None or not found.records:
                continue
            column = matrix.columns[place]
            address = address_of(row, column)
            page = site / address
            files = [file for each in found.records for file in _copy(found, each, page)]
            captures = {name for each in found.records for name in captures_of(each)}
            kept |= {address for file in files if file.copy and file.name in captures}
            text = template.render(
                row=row, column=column, found=found, files=files, style=_style(),
                address=address_of, badges=BADGES, bad=BAD, folder=name_of(found.results),
                others=[c for c, f in zip(matrix.columns, row.found, strict=True)
                        if f and f.records and c is not column],
                command=command_of(found.results.manifest),
                **(_of_promise(row, found) if found.finding else _of_load(found)),
            )  # fmt: skip
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
    return kept


def address_of(row: MatrixRow, column: KernelColumn) -> str:
    """Return where the page of a row on a kernel is, from the site's top."""
    return f"{'promises' if row.promise else 'loads'}/{column.slug}/{row.slug}.html"


def _copy(found: Found, record: Record, page: Path) -> Iterator[KeptFile]:
    """Copy what a trial kept into a folder beside its page; yield each file that it made."""
    folder = found.results.folder
    for name, sha256 in sorted(record.artefacts.items()):
        if Path(name).name != name or Path(name).suffix not in _PASSIVE:
            yield KeptFile(name, sha256, record.trial_id, problem=f"{name} is no capture or log")
            continue
        kept, problem = find_kept(folder, record, name)
        if kept is None:
            problem = problem.replace(str(folder), name_of(found.results))
            yield KeptFile(name, sha256, record.trial_id, problem=problem)
            continue
        copy = page.with_suffix("") / record.trial_id / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept, copy)
        link = quote(copy.relative_to(page.parent).as_posix())
        yield KeptFile(name, sha256, record.trial_id, link, format_bytes(copy.stat().st_size))


def _of_load(found: Found) -> dict[str, Any]:
    """Return what the page of a load shows of its own: its proof, its link and a waterfall."""
    assert found.cell is not None  # noqa: S101 - a load has a cell
    table = make_table((found.cell,), None)
    shown = next((r for r in (*found.cell.proven, *found.records) if r.measured_as(PageLoad)), None)
    drawing = None
    if shown is not None:
        requests = request_frame(replace(found.results, records=(shown,)))
        if len(requests):
            drawing = Drawing(waterfall(requests), f"Seed {shown.trial.seed}.")
    return {"table": table, "pages": (), "costs": (), "trials": trial_lines(table),
            "calibrations": calibrations(found.records), "hellos": hello_lines(table.cells),
            "ecns": ecn_lines(table), "drawing": drawing}  # fmt: skip


def _of_promise(row: MatrixRow, found: Found) -> dict[str, Any]:
    """Return what the page of a promise shows of its own: its sentence, ladder and script."""
    assert row.promise is not None and found.finding is not None  # noqa: S101 - it has both
    alone = replace(row.promise, findings=(found.finding,))
    table = PromiseTable(row.title, (Lane(found.results),), (alone,))
    return {"promised": table, "entries": make_entries(table)}


def _write_index(site: Path, matrix: Matrix, steps: Sequence[ReleaseStep], apart: Sequence[str],
                 kept: set[str]) -> None:  # fmt: skip
    figure = draw_releases(matrix, steps)
    moved = {address_of(each.row, matrix.columns[each.after]): (step, each) for step in steps
             for each in step.moved}  # fmt: skip
    text = open_templates(HERE).get_template("index.html.jinja").render(
        matrix=matrix, steps=steps, apart=apart, kept=kept, moved=moved, style=_style(),
        drawing=Drawing(figure, "") if figure else None, address=address_of, badges=BADGES, bad=BAD,
        folders=[_describe(results) for results in matrix.results], packet_lines=packet_lines,
    )  # fmt: skip
    (site / INDEX).write_text(text, encoding="utf-8")


def _describe(results: Results) -> dict[str, Any]:
    return {"name": name_of(results), "identity": results.identity,
            "title": experiment_of(results.manifest).get("title", ""),
            "created": str(results.manifest.get("created_utc", "")),
            "revision": revision_of(results.manifest), "command": command_of(results.manifest),
            "sections": manifest_sections(results.manifest)}  # fmt: skip


@cache
def _style() -> str:
    sheets = (TEMPLATES / "report.css", HERE / "site.css")
    return plot.style_sheet() + "".join(sheet.read_text("utf-8") for sheet in sheets)
