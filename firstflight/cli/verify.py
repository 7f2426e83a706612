"""Verb ``verify``: every record of results judged again from its own captures and observation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analysis.records.metric import PLT
from firstflight.cli.ended import write_reports
from firstflight.cli.services import Services, pass_services
from testbed.base import log
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_OUT_OF_TOLERANCE, TestbedError
from testbed.base.scratch import scratch_folder
from testbed.base.units import format_count
from testbed.experiment.lanes import LANES_FILE, name_lanes, read_lanes
from testbed.results.agreement import first_difference
from testbed.results.costs import COSTS_FILE
from testbed.results.folder import TRACES_FOLDER
from testbed.results.lazy import read_lazy_records
from testbed.results.manifest import MANIFEST_FILE, load_manifest
from testbed.results.records import RECORDS_FILE
from testbed.results.seal import SEAL_FILE, TRIALS, is_judged_here, read_seal, write_seal

if TYPE_CHECKING:
    from testbed.runner.verification import Verified

_log = log.logger(__name__)
_SOURCES = (MANIFEST_FILE, RECORDS_FILE, COSTS_FILE, TRIALS, TRACES_FOLDER)
"""What the other files of results are made of."""
_MOST_NAMED = 100
_SHOWN = 60


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write the result as JSON.")
@pass_services
def verify(services: Services, /, directories: tuple[Path, ...], as_json: bool) -> int:
    """Judge every record in DIR... again, and name each number that is not what it was.

    Nothing is loaded: each record is computed again from its trial's captures and observation; ids,
    plan and environment from the manifest; table, summary and report from the records.  The rest
    has digests in verification.json, which is written anew where all is well.

    Exit code: 0 all is well, 1 a number is contradicted, 4 a record is missing or was judged by
    nothing, since its captures were not kept.
    """
    documents = [_verify(services, directory) for directory in directories]
    if as_json:
        click.echo(json.dumps(documents, indent=2))
    if any(each["problems"] for each in documents):
        return EXIT_OUT_OF_TOLERANCE
    whole = all(not each["unjudged"] and not each["missing"] for each in documents)
    return EXIT_OK if whole else EXIT_INCOMPLETE


def _verify(services: Services, directory: Path) -> dict[str, Any]:
    """Verify the results in ``directory``, or all lanes of it; say what came of it, and seal it."""
    from testbed.runner.verification import verify

    lanes = read_lanes(directory)
    folders = {name: directory / name for name in lanes or (".",)}
    found = {name: verify(folder, services.conclude) for name, folder in folders.items()}
    problems = [
        f"{name}: {each}".removeprefix(".: ")
        for name, one in found.items()
        for each in one.problems
    ]
    if lanes:
        named = name_lanes([load_manifest(folder).experiment for folder in folders.values()])
        if named != lanes:
            problems.append(f"{LANES_FILE}: the lanes are {', '.join(named)} by their manifests")
    problems += _stale_files(services, directory, lanes)
    for folder, one in zip(folders.values(), found.values(), strict=True):
        if not problems and one.judged == one.records and not is_judged_here(folder):
            write_seal(folder, read_lazy_records(folder), one.judged)
    records, judged = (sum(getattr(v, n) for v in found.values()) for n in ("records", "judged"))
    click.echo(f"{directory}: {judged} of {format_count(records, 'record')} judged again", err=True)
    _say(directory, problems, found)
    if any(read_seal(folder) is None for folder in folders.values()):
        _log.warning("%s: without %s nothing shows edits of costs, logs and facts",
                     directory, SEAL_FILE)  # fmt: skip
    if problems and any(_is_of_another_judge(services, folder) for folder in folders.values()):
        _log.info("other code judged them: verify them by the git_revision that manifest.json has")
    unjudged = {why: names for one in found.values() for why, names in one.unjudged.items()}
    missing = sum(one.missing for one in found.values())
    return {"results": str(directory), "records": records, "judged": judged,
            "problems": problems, "unjudged": unjudged, "missing": missing}  # fmt: skip


def _say(directory: Path, problems: Sequence[str], found: Mapping[str, Verified]) -> None:
    for problem in problems[:_MOST_NAMED]:
        _log.error("%s: %s", directory, problem)
    if len(problems) > _MOST_NAMED:
        _log.error("%s: and %d more", directory, len(problems) - _MOST_NAMED)
    for one in found.values():
        for why, trials in one.unjudged.items():
            count = format_count(len(trials), "record")
            _log.warning("%s: %s cannot be judged: %s", directory, count, why)
        if one.missing:
            planned = format_count(one.missing, "planned trial")
            _log.warning("%s: %s without a record", directory, planned)


def _is_of_another_judge(services: Services, folder: Path) -> bool:
    told = load_manifest(folder).environment.parts.get("code.judge")
    return told is not None and told != services.digest_judge()


def _stale_files(services: Services, directory: Path, lanes: Sequence[str]) -> list[str]:
    """Return a sentence for each file that is not what the records in ``directory`` make.

    Reports say who judged the records, which may have been somebody else.
    """
    problems: list[str] = []
    with scratch_folder("verify") as scratch:
        for judged_here in (True, False):
            made = scratch / str(judged_here) / directory.resolve().name
            for lane in lanes or (".",):
                (made / lane).mkdir(parents=True)
                for source in (directory / lane / name for name in _SOURCES):
                    if source.exists():
                        (made / lane / source.name).symlink_to(source.resolve())
                if judged_here:
                    records = read_lazy_records(made / lane)
                    write_seal(made / lane, records, len(records))
            if lanes:
                (made / LANES_FILE).symlink_to((directory / LANES_FILE).resolve())
            try:
                write_reports(services, made, PLT)
            except TestbedError as error:
                return [f"no report can be made of it: {error}"]
            before, problems = problems, list(_differing(made, directory))
            if not problems:
                break
            if before:  # neither has all: what both find is no matter of who judged
                problems = [each for each in before if each in problems] or before
    return problems


def _differing(made: Path, directory: Path) -> Iterator[str]:
    for path in sorted(made.rglob("*")):
        name = path.relative_to(made).as_posix()
        theirs = directory / name
        linked = any(each.is_symlink() for each in (path, *path.parents) if made in each.parents)
        if linked or path.name == SEAL_FILE or not path.is_file() or not theirs.is_file():
            continue
        if (ours := path.read_bytes()) != (told := theirs.read_bytes()):
            yield f"{name}: {_first_unequal(told, ours, name)} by its records"


def _first_unequal(told: bytes, made: bytes, name: str) -> str:
    """Return the first value in which two files differ, or the first line."""
    try:
        if name.endswith(".json"):
            return first_difference(json.loads(told), json.loads(made)) or "its text"
    except ValueError:
        return "it is not JSON"
    lines = zip_longest(told.decode(errors="replace").split("\n"), made.decode().split("\n"))
    number, (theirs, ours) = next(
        (number, pair) for number, pair in enumerate(lines, 1) if pair[0] != pair[1]
    )
    pairs = enumerate(zip_longest(theirs or "", ours or ""))
    same = next((place for place, (a, b) in pairs if a != b), 0)
    there, here = ((line or "")[max(0, same - _SHOWN // 2) :][:_SHOWN] for line in (theirs, ours))
    return f"line {number}: {there!r} and {here!r}"
