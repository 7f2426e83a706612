"""Reference of the program, from its own declarations: its verbs, knobs, results and rooms.

``python -m firstflight.reference`` writes ``firstflight/verbs.json``, which the program answers
from, and for people docs/command-line.md, docs/knobs.md, docs/results.md, docs/results/ and the
table of rooms in CONTRIBUTING.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import click

from firstflight.cli.main import testbed
from firstflight.knobs_reference import KNOBS_REFERENCE, render_knobs
from firstflight.results_reference import write_results
from firstflight.rooms_reference import write_rooms
from firstflight.usage import PROGRAM, ROOT, VERBS_FILE, VerbHelp

COMMAND_LINE = ROOT / "docs" / "command-line.md"
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


if __name__ == "__main__":
    verbs = describe_verbs()
    VERBS_FILE.write_text(render_verbs(verbs), encoding="utf-8")
    COMMAND_LINE.write_text(render_command_line(verbs), encoding="utf-8")
    KNOBS_REFERENCE.write_text(render_knobs(), encoding="utf-8")
    write_results()
    write_rooms()
