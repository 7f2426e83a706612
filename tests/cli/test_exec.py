"""What ``exec`` and ``shell`` plan and refuse, without a kernel."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from firstflight.cli.choice import Choice, sweep_options
from firstflight.cli.exec import print_output
from firstflight.cli.in_lab import plan_command
from firstflight.cli.services import program_services
from testbed.base.errors import ConfigurationError
from testbed.base.places import CONFIGS
from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE
from testbed.kinds.command.spec import LabCommand
from testbed.model import Experiment
from tests.hallway import CATALOGUE

TEXT = """\
page = "wsj"
repetitions = 5
until_ci_pct = 3
[sweep]
client = ["graph", "wget2"]
tfo = [false, true]
"""


def plan(folder: Path, only: str | None, *sets: str, **more: str) -> Experiment:
    config = folder / "sweep.toml"
    config.write_text(TEXT)
    choice = Choice(config, only, sets)
    command = more.pop("command", "curl -w '%{http_code}' {url}")
    return plan_command(choice, CATALOGUE, command, f"-- {command}", **more)


def test_one_condition_once_whoever_would_load_it_how_often(tmp_path: Path) -> None:
    experiment = plan(tmp_path, "tfo=true", at="server", peer='x "y z"')
    (spec,) = experiment.conditions
    assert isinstance(spec, LabCommand)
    assert (spec.command, spec.at, spec.peer) == ("curl -w '%{http_code}' {url}", "server",
                                                  'x "y z"')  # fmt: skip
    assert spec.tcp.tfo
    assert (experiment.name, experiment.repetitions) == ("lab-sweep", 1)
    assert (experiment.until_ci_pct, experiment.warmup_blocks) == (None, 0)


def test_a_command_that_looks_like_toml_is_one(tmp_path: Path) -> None:
    (spec,) = plan(tmp_path, "tfo=true", command="[ 1 = 1 ]").conditions
    assert isinstance(spec, LabCommand) and spec.command == "[ 1 = 1 ]"


def test_several_conditions_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="this is 2 conditions; choose one, such as"):
        plan(tmp_path, None)


def test_a_config_of_another_kind_has_no_such_lab(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="trials of the kind command have no such knob"):
        plan(tmp_path, "tfo=true", "listen_backlog=5")


@pytest.mark.parametrize(
    ("name", "kind"), [("overload-segments", "server_load"), ("scenarios", "scenario")]
)
def test_a_config_without_a_page_is_told_so(name: str, kind: str) -> None:
    choice = Choice(CONFIGS / f"{name}.toml", None, ())
    with pytest.raises(ConfigurationError, match=f'kind = "{kind}" has no page: a command runs in'):
        plan_command(choice, program_services().catalogue(), "ls", "-- ls")


def test_what_was_printed_is_printed_byte_by_byte(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / OUTPUT_FILE).write_bytes(b"a\0\xff\r\n")
    print_output(tmp_path)
    assert capfdbinary.readouterr() == (b"a\0\xff\r\n", b"")
    (tmp_path / ERROR_FILE).write_bytes(b"\xfe")
    print_output(tmp_path)
    assert capfdbinary.readouterr() == (b"a\0\xff\r\n", b"\xfe")


def test_only_that_is_repeated_is_one_list() -> None:
    """Click hands over what a user means by two of them, and not the last one."""

    @click.command()
    @sweep_options
    def told(**chosen: object) -> object:
        return chosen["only"]

    for words, joined in (
        ([], None),
        (["--only", "a=1"], "a=1"),
        (["--only", "a=1,b=2", "--only", "a=3"], "a=1,b=2,a=3"),
    ):
        assert told.main(words, standalone_mode=False) == joined
