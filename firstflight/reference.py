"""Reference of the command line, ``docs/command-line.md``: each verb's help.

``python -m firstflight.reference`` writes it anew, the manual page, docs/checks.md,
docs/knobs.md, docs/results.md, docs/results/ and the table of rooms in CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from firstflight.checks_reference import CHECKS_REFERENCE, render_checks
from firstflight.cli.main import testbed
from firstflight.knobs_reference import KNOBS_REFERENCE, render_knobs
from firstflight.manual import MANUAL, render_manual
from firstflight.results_reference import write_results
from firstflight.rooms_reference import write_rooms
from firstflight.usage import PROGRAM, REFERENCE

WIDTH = 90
_INTRODUCTION = f"""\
# The command line

This page lists every verb of `{PROGRAM}` with its options. It is written by `make reference` from
the verbs themselves. `{PROGRAM}` alone is `{PROGRAM} run`.

`{PROGRAM}` answers `--help` and mistyped words from this file, before any Python package is
fetched. Each verb sets up only what it needs: a run makes its root, its kernel and the C programs,
a recording makes the browser driver, and a verb that only reads results makes nothing.
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


def render_reference() -> str:
    """Return the whole file."""
    parts = [_INTRODUCTION]
    for words, _ in list_verbs():
        parts.append(f"## {' '.join((PROGRAM, *words))}\n\n```text\n{_help(words)}\n```\n")
    return "\n".join(parts)


def _help(words: tuple[str, ...]) -> str:
    command: click.Command = testbed
    context = click.Context(
        command, info_name=PROGRAM, terminal_width=WIDTH, **testbed.context_settings
    )
    for name in words:
        assert isinstance(command, click.Group)  # noqa: S101  list_verbs went this way
        below = command.get_command(context, name)
        assert below is not None  # noqa: S101
        command = below
        context = click.Context(command, context, name)
    return command.get_help(context)


if __name__ == "__main__":
    REFERENCE.write_text(render_reference(), encoding="utf-8")
    MANUAL.write_text(render_manual(), encoding="utf-8")
    CHECKS_REFERENCE.write_text(render_checks(), encoding="utf-8")
    KNOBS_REFERENCE.write_text(render_knobs(), encoding="utf-8")
    write_results()
    write_rooms()
