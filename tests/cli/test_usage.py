"""What ``run.sh`` answers before anything is set up, held against the verbs themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.checks_reference import CHECKS_REFERENCE, render_checks
from firstflight.cli import main as cli
from firstflight.reference import COMMAND_LINE, KNOBS_REFERENCE, list_verbs, render_knobs
from firstflight.usage import COMPLETION, PROGRAM, VERBS_FILE, Answer, answer, read_verbs
from testbed.base import proc
from testbed.base.places import ROOT, describe_version

SECTIONS = read_verbs()
VERBS = {" ".join(words): command for words, command in list_verbs()}
LEAVES = {name for name, command in VERBS.items() if not isinstance(command, click.Group)}


def test_the_list_of_knobs_is_what_the_model_declares() -> None:
    assert KNOBS_REFERENCE.read_text(encoding="utf-8") == render_knobs(), "run make reference"


def test_the_list_of_checks_is_what_trials_are_held_against() -> None:
    assert CHECKS_REFERENCE.read_text(encoding="utf-8") == render_checks(), "run make reference"


def test_the_reference_is_what_the_verbs_say() -> None:
    # In a process of its own: click keeps the help option of a verb from its first use, and a test
    # that calls a verb without its parent leaves another there.
    program = "from firstflight.reference import *; verbs = describe_verbs(); "
    program += "print(render_verbs(verbs) + render_command_line(verbs), end='')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    rendered = proc.run((sys.executable, "-P", "-c", program), env=environment).stdout
    written = VERBS_FILE.read_text(encoding="utf-8") + COMMAND_LINE.read_text(encoding="utf-8")
    assert written == rendered, "run make reference"


def test_the_reference_has_every_verb() -> None:
    assert {name for name, each in SECTIONS.items() if not each.is_group} == LEAVES
    assert set(SECTIONS) == set(VERBS)


def answered(words: list[str]) -> Answer:
    """What is said of a command line that does not go on."""
    said = answer(words, SECTIONS)
    assert said is not None
    return said


def declared(command: click.Command) -> Iterator[tuple[str, bool]]:
    yield from (("-h", False), ("--help", False))
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for name in parameter.opts:
                yield name, not parameter.is_flag


@pytest.mark.parametrize("verb", VERBS)
def test_the_options_are_read_as_they_are_declared(verb: str) -> None:
    assert dict(SECTIONS[verb].options) == dict(declared(VERBS[verb]))


@pytest.mark.parametrize("words", [
    [], ["run"], ["run", "x.toml", "-n5", "--set", "--odd", "--only=page=a", "-o", "-", "y"],
    ["run", "--", "--hepl"], ["compare", "a", "b", "--min-effect", "-1", "--json"],
    ["pages", "list", "--json"], ["serve", "rnu"], ["unpack", "x.zip", "--rerun", "-o", "y"],
])  # fmt: skip
def test_what_may_go_on_is_not_answered(words: list[str]) -> None:
    assert answer(words, SECTIONS) is None


@pytest.mark.parametrize(("words", "verb"), [
    (["-h"], ""), (["--help", "rnu"], ""), (["run", "--help"], "run"),
    (["run", "x.toml", "-n", "--help", "-h"], "run"), (["pages", "--help"], "pages"),
    (["pages", "list", "-h"], "pages list"),
])  # fmt: skip
def test_help(words: list[str], verb: str) -> None:
    found = answered(words)
    assert found == Answer(SECTIONS[verb].help)
    assert found.text.startswith(f"Usage: {PROGRAM}{' ' * bool(verb)}{verb} [OPTIONS]")


@pytest.mark.parametrize(("words", "problem"), [
    (["rnu"], "no such verb: rnu (did you mean 'run'?); `./run.sh --help` names all"),
    (["xyzzy"], "no such verb: xyzzy; `./run.sh --help` names all"),
    (["pages", "lst"], "no such verb: pages lst (did you mean 'list'?); `./run.sh pages --"),
    (["run", "--hepl"], "no such option: --hepl (did you mean '--help'?); `./run.sh run --"),
    (["run", "--job=2"], "no such option: --job (did you mean '--jobs'?)"),
    (["run", "-x"], "no such option: -x"),
    (["--json"], "no such option: --json"),
])  # fmt: skip
def test_wrong_words(words: list[str], problem: str) -> None:
    text, code = answered(words)
    assert text.startswith(f"error: {problem}")
    assert code == 2


def test_a_group_alone_shows_its_verbs() -> None:
    assert answer(["pages"], SECTIONS) == Answer(SECTIONS["pages"].help, 2)


WORDS = sorted({name for each in SECTIONS.values() for name in each.options} - {"-h", "--help"})


@given(
    st.sampled_from(sorted(LEAVES - {COMPLETION})),
    st.lists(st.sampled_from([*WORDS, "--jobs=3", "-n3", "-x", "--", "-", "1", "-1", "a=b"])),
)
def test_nothing_is_refused_that_the_program_takes(verb: str, words: list[str]) -> None:
    command = VERBS[verb]
    unknown = False
    try:
        command.make_parser(click.Context(command)).parse_args(list(words))
    except click.NoSuchOption:
        unknown = True
    except click.UsageError:
        return  # wrong in another way, which is left to the program
    found = answer([*verb.split(), *words], SECTIONS)
    assert (found.code if found else 0) == (2 if unknown else 0), found


def test_a_completion_is_refused_as_the_verb_itself_would() -> None:
    for words in (["completion"], ["completion", "fish"], ["completion", "bash", "bash"]):
        text, code = answered(words)
        assert code == 2
        assert "name one of bash" in text
    with pytest.raises(click.UsageError):
        cli.testbed.main(["completion", "fish"], standalone_mode=False)


def test_the_verb_prints_what_run_sh_prints(capsys: pytest.CaptureFixture[str]) -> None:
    cli.testbed.main(["completion", "bash"], standalone_mode=False)
    assert capsys.readouterr().out.rstrip("\n") == answered(["completion", "bash"]).text


def test_click_and_run_sh_say_the_same_version(capsys: pytest.CaptureFixture[str]) -> None:
    cli.testbed.main(["--version"], standalone_mode=False)
    assert capsys.readouterr().out == f"{describe_version()}\n"
