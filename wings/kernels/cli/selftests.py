"""The verb ``kernel selftests``: a kernel's own tests, run by that kernel in virtual time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from analysis.formats.forms import FORMS_HELP
from analysis.formats.suites import Tested
from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import (
    EXIT_INCOMPLETE,
    EXIT_MISSING,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
)
from testbed.base.scratch import scratch_folder
from testbed.base.whole_file import write_whole
from testbed.kernel.build.cache import KernelBuild
from testbed.kernel.build.pin import DEFAULT_VERSION
from testbed.results.folder import new_results, refuse_explicit
from wings.kernels.selftests.packetdrill import (
    NOT_THERE,
    VARIABLE,
    find_packetdrill,
)
from wings.kernels.selftests.plan import Wish, copy_suite
from wings.kernels.selftests.prepared import SelftestRun, prepare_selftests
from wings.kernels.selftests.printed import STYLES, render, render_junit, summary
from wings.kernels.selftests.verdict import Verdict

_log = log.logger(__name__)
_folder = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("selftests")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--only", "pattern", metavar="GLOB", help="Only tests whose names match this shell pattern."
)
@click.option("--kernel-version", "version", default=DEFAULT_VERSION, show_default=True,
              metavar="V", help="Which kernel: a pinned one, or one of yours.")  # fmt: skip
@click.option("--debug", is_flag=True, help="Use a debug kernel (kernels/debug.*).")
@click.option("--packetdrill", "source", type=_folder, metavar="FOLDER",
              help=f"The source of packetdrill; default: {VARIABLE}, else the program on the "
                   "PATH.")  # fmt: skip
@click.option("--suite", type=_folder, metavar="FOLDER",
              help="Run packetdrill's scripts of this folder instead.")  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Guests at once; default: one for each core."
)
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-selftests.")  # fmt: skip
@click.option("--style", type=click.Choice(STYLES), default="table", show_default=True,
              help=f"Print a table, {FORMS_HELP}.")  # fmt: skip
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write JUnit XML as well.")  # fmt: skip
@pass_services
def selftests(services: Services, /, names: tuple[str, ...], pattern: str | None, version: str,
              debug: bool, source: Path | None, suite: Path | None, jobs: int | None,
              output: Path | None, style: str, junit: Path | None) -> int:  # fmt: skip
    """Run the tests in a kernel's own source: packetdrill's scripts, and others of selftests/net.

    NAME is a test, such as tcp_fastopen_server_basic-rw or tls; without any, all scripts and a
    selection of the others run.  Each test has a guest of its own.

    Exit code: 0 no test fails, 1 one does, 3 packetdrill is missing, 4 a test did not finish.
    """
    if output is not None:
        refuse_explicit(services.results, output)
    cache, began = services.cache(), services.now()
    with places.using_cache(cache), scratch_folder("kernel") as scratch:
        drill = find_packetdrill(source, cache, _log.info)
        wish = Wish(names, pattern, copy_suite(suite, scratch) if suite else None)
        run = prepare_selftests(version, wish, drill, cache, debug=debug)
        with new_results(services.results, "selftests", began, output) as folder:
            run.begin(folder)
        said = f"packetdrill: {drill.says}" if drill else "no packetdrill"
        _log.info("%d tests of %s; %s", len(run.tests), run.tree.source, said)
        verdicts = run.perform(folder, jobs)
    tested = _tested(run.bench.build, version, folder, began, services.now())
    if junit is not None:
        remedy = "make its folder, or choose another place"
        write_whole(junit, render_junit(verdicts, tested), remedy)
    click.echo(render(verdicts, tested, style).rstrip("\n"))
    _log.info("%s; results in %s", summary(verdicts), folder)
    if run.lacks_packetdrill:
        _log.error("%s", NOT_THERE)
    return _exit_code(verdicts, run)


def _tested(
    build: KernelBuild, name: str, folder: Path, began: datetime, ended: datetime
) -> Tested:
    parts = {f"kernel.{key}": value if isinstance(value, str) else json.dumps(value)
             for key, value in asdict(build.identity).items()}  # fmt: skip
    first, last = (moment.isoformat(timespec="seconds") for moment in (began, ended))
    return Tested(name, str(folder), first, last, parts, build.identity.binary_sha256[:16])


def _exit_code(verdicts: Sequence[Verdict], run: SelftestRun) -> int:
    states = {verdict.state for verdict in verdicts}
    if "failed" in states:
        return EXIT_OUT_OF_TOLERANCE
    if "incomplete" in states:
        return EXIT_INCOMPLETE
    return EXIT_MISSING if run.lacks_packetdrill else EXIT_OK
