"""Reference of the program, from its own declarations: its verbs, knobs, results and rooms.

``python -m firstflight.reference`` writes ``firstflight/verbs.json``, which the program answers
from, and for people docs/command-line.md, docs/checks.md, docs/knobs.md, docs/results.md and the
table of rooms in CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping

import click

from firstflight.checks_reference import CHECKS_REFERENCE, render_checks
from firstflight.cli.main import testbed
from firstflight.results_reference import RESULTS_REFERENCE, render_results
from firstflight.usage import PROGRAM, ROOT, VERBS_FILE, VerbHelp
from testbed.experiment.knobs import FileKnob, explain, paths

COMMAND_LINE = ROOT / "docs" / "command-line.md"
KNOBS_REFERENCE = ROOT / "docs" / "knobs.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- rooms -->\n", "<!-- end -->"
PACKAGES = ("firstflight", "testbed", "analysis", "wings")
WIDTH = 90
_INTRODUCTION = f"""\
# The command line

This page lists every verb of `{PROGRAM}` with its options. It is written by `make reference` from
the verbs themselves, as is `firstflight/verbs.json`, from which `{PROGRAM}` answers `--help` and
mistyped words before any Python package is fetched. `{PROGRAM}` alone is `{PROGRAM} run`.

Each verb ends with one of the [exit codes](results.md#exit-codes).

| variable of the environment | what it sets |
|---|---|
| `XDG_CACHE_HOME` | where the cache is: all that was built, in `firstflight/`; `~/.cache` by default |
| `XDG_DATA_HOME` | where kernels of your own are, in `firstflight/`; `~/.local/share` by default |
| `FIRSTFLIGHT_UNJAILED` | 1: load pages without a jail, where the kernel has no Landlock; `container`: the container is the jail, if it shows to be one |
| `FIRSTFLIGHT_BROWSER` | the headless browser's program, for recordings and on the host's kernel, instead of the installed one and the root's |
| `FIRSTFLIGHT_DEBIAN_MIRROR` | where Debian's packages are had from: an address that ends with /debian and has debian-security beside it |
| `FIRSTFLIGHT_DEBIAN_ARCHIVE` | where packages are had from that have left the mirror: a server laid out as Debian's snapshot service |
| `FIRSTFLIGHT_LOCKED` | 1: as `--locked`, for every command |
"""  # noqa: E501  rows of a table
_KNOBS_INTRODUCTION = """\
# Knobs

This page lists every knob that an experiment may set. It is written by `make reference` from the
declarations in `testbed/model/`; `./run.sh knobs` prints the same.

An experiment file sets a knob in its table (`[link]`, `[tcp]`, or at the top, before any table),
`--set NAME=VALUE` sets it on the command line, and a list in `[sweep]` loads every condition with
each of its values; a knob marked * holds for a whole experiment and cannot be swept.
*Since* is the first schema of results that has the knob: older results had its default.
"""


def list_verbs(
    command: click.Command = testbed, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield ``command`` and all below it, each with the words that lead to it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            below = command.get_command(context, name)
            assert below is not None  # noqa: S101  it was listed
            yield from list_verbs(below, (*words, name))


def describe_verbs() -> dict[str, VerbHelp]:
    """Return what is said of each verb before anything is set up."""
    contexts: dict[tuple[str, ...], click.Context] = {}
    described = {}
    for words, command in list_verbs():
        contexts[words] = context = (
            click.Context(command, contexts[words[:-1]], words[-1])
            if words
            else click.Context(
                command, info_name=PROGRAM, terminal_width=WIDTH, **testbed.context_settings
            )
        )
        options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
        described[" ".join(words)] = VerbHelp(
            command.get_help(context),
            {name: not each.is_flag for each in options for name in each.opts},
            {name: values.strip("[]").split("|") for each in options for name in each.opts
             if (values := each.make_metavar(context)).startswith("[") and not each.is_flag},
            isinstance(command, click.Group),
        )  # fmt: skip
    return described


def render_verbs(verbs: Mapping[str, VerbHelp]) -> str:
    """Return the file that answers before set-up: one line for each verb."""
    lines = (f"{json.dumps(name)}: {json.dumps(verb._asdict())}" for name, verb in verbs.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def render_command_line(verbs: Mapping[str, VerbHelp]) -> str:
    """Return docs/command-line.md."""
    return "\n".join((
        _INTRODUCTION,
        *(f"## {f'{PROGRAM} {name}'.strip()}\n\n```text\n{verb.help}\n```\n"
          for name, verb in verbs.items()),
    ))  # fmt: skip


def render_knobs() -> str:
    """Return the whole file."""
    tables: dict[tuple[str, ...], list[FileKnob]] = {}
    for knob in paths().values():
        tables.setdefault(knob.table, []).append(knob)
    parts = [_KNOBS_INTRODUCTION]
    for table, knobs in tables.items():
        heading = f"[{'.'.join(table)}]" if table else "At the top of the file"
        parts.append(f"## {heading}\n\n" + "\n".join(_rows(knobs)) + "\n")
    return "\n".join(parts)


def _rows(knobs: list[FileKnob]) -> Iterator[str]:
    yield "| knob | meaning | allowed | default | unit | since |"
    yield "|---|---|---|---|---|---|"
    for knob in knobs:
        about = explain(knob)
        name = f"`{knob.declared.name}`{'' if about['swept'] else ' *'}"
        default = f"`{about['default']}`" if about["default"] else ""
        cells = (name, about["meaning"], about["allowed"], default, about["unit"], about["since"])
        yield f"| {' | '.join(map(str, cells))} |"


def render_rooms(text: str) -> str:
    """Return the ``text`` of CONTRIBUTING.md with its table of rooms made from the packages.

    Raises:
        ValueError: the text has no place for it.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{CONTRIBUTING} has no {BEGIN.strip()} and {END}")
    rows = (f"| `{room}/` | {sentence} |" for room, sentence in list_rooms())
    return f"{before}{BEGIN}| room | what is in it |\n|---|---|\n" + "\n".join((*rows, end)) + after


def list_rooms() -> Iterator[tuple[str, str]]:
    """Yield each package and the one sentence that its docstring begins with; of wings no tests."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("__init__.py")):
            if "tests" in file.relative_to(ROOT).parts:
                continue
            docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
            sentence = docstring.partition("\n\n")[0].replace("``", "`")
            yield str(file.parent.relative_to(ROOT)), " ".join(sentence.split())


if __name__ == "__main__":
    verbs = describe_verbs()
    VERBS_FILE.write_text(render_verbs(verbs), encoding="utf-8")
    COMMAND_LINE.write_text(render_command_line(verbs), encoding="utf-8")
    CHECKS_REFERENCE.write_text(render_checks(), encoding="utf-8")
    KNOBS_REFERENCE.write_text(render_knobs(), encoding="utf-8")
    RESULTS_REFERENCE.write_text(render_results(), encoding="utf-8")
    CONTRIBUTING.write_text(render_rooms(CONTRIBUTING.read_text("utf-8")), encoding="utf-8")
