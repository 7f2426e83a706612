"""Verb ``exec``: one command in the lab of an experiment; its record keeps output and capture."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click

from firstflight.cli.choice import Choice, lab_options
from firstflight.cli.in_lab import plan_command, read_text
from firstflight.cli.new_run import run_new
from firstflight.cli.services import Services, pass_services
from testbed.base import log
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError
from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, Executed
from testbed.kinds.command.spec import End
from testbed.model import Record
from testbed.results.records import read_records

_log = log.logger(__name__)


@click.command()
@lab_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--at", type=click.Choice(get_args(End)), default="client", show_default=True,
              help="The end of the link where COMMAND runs.")  # fmt: skip
@click.option("--peer", metavar="COMMAND", default="",
              help="Command at the other end meanwhile, such as 'iperf3 -s'.")  # fmt: skip
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-lab-<experiment>.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write the outcome as JSON.")
@pass_services
def exec(
    services: Services, /, command: tuple[str, ...], at: str, peer: str, output: Path | None,
    as_json: bool, **chosen: Any,
) -> int:  # fmt: skip
    """Run COMMAND in the lab of one condition of CONFIG, and print what it prints.

    Words such as {url}, {server} or {ca} are replaced (docs/own-client.md).  Exit status 0: COMMAND
    ended with 0; 1: with another status, which is printed and recorded.
    """
    if not command:
        raise ConfigurationError(
            ["there is no command; write it behind --, such as: exec configs/quick.toml --only "
             "tfo=true -- ping -c 3 {server}"]
        )  # fmt: skip
    experiment = plan_command(Choice(**chosen), services.catalogue(), shlex.join(command),
                              f"-- {shlex.join(command)}", at=at, peer=peer)  # fmt: skip
    run = run_new(services, (experiment,), output, jobs=1)
    code = run.tallies[0].exit_code
    if run.interrupted:
        _log.error("interrupted; what there is of it is in %s", run.folder)
        return code
    return _show(run.folder, read_records(run.folder)[-1], code, as_json)


def _show(folder: Path, record: Record, code: int, as_json: bool) -> int:
    """Print what the command printed, and return the exit code of the verb."""
    trial = folder / "trials" / record.trial_id
    executed = record.measured_as(Executed)
    if code == EXIT_OK and executed is not None and executed.exit_status:
        code = EXIT_OUT_OF_TOLERANCE
    if as_json:
        click.echo(json.dumps({
            "results": str(folder),
            "exit_code": code,
            "trial_id": record.trial_id,
            "outcome": record.outcome,
            "reason": record.reason,
            "executed": None if executed is None else asdict(executed),
            "output": read_text(trial / OUTPUT_FILE),
            "error": read_text(trial / ERROR_FILE),
        }, indent=2))  # fmt: skip
        return code
    print_output(trial)
    if record.reason is not None:
        _log.error("%s: %s", record.outcome, record.reason)
    if executed is not None:
        _log.info(
            "it ended with status %d after %.1f ms", executed.exit_status, executed.duration_ms
        )
    _log.info("output and capture: %s", trial)
    return code


def print_output(trial: Path) -> None:
    """Print what a command printed, byte by byte, each to where it was printed."""
    for name, is_error in ((OUTPUT_FILE, False), (ERROR_FILE, True)):
        with suppress(FileNotFoundError):  # it did not begin
            click.echo((trial / name).read_bytes(), nl=False, err=is_error)
