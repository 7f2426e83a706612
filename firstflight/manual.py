"""Manual page, ``docs/man/firstflight.1``, from the verbs themselves (man(7)).

Written by ``make reference``; read with ``man docs/man/firstflight.1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import click

from firstflight.cli.main import testbed
from firstflight.results_reference import read_exit_codes
from firstflight.usage import PROGRAM, ROOT
from testbed.base.places import describe_version

MANUAL = ROOT / "docs" / "man" / "firstflight.1"
_DATE = "2026-11-22"  # of the page's form: its content is the program's
_FILES = (
    ("configs/NAME.toml", "An experiment; firstflight without a verb runs paper-table1."),
    ("pages/NAME/", "A page, by its recording, its table of sizes or its recipe."),
    ("results/", "Results, a folder for each run; results/latest is the newest.  No command "
                 "removes them but `unpack --replace`, in the folder that it is given."),
    ("$XDG_CACHE_HOME/firstflight/", "All that was built: Python, roots, kernels, pages; "
                                     "~/.cache/firstflight by default.  clean empties it."),
    ("$XDG_DATA_HOME/firstflight/", "Kernels of your own: patches and settings; "
                                    "~/.local/share/firstflight by default."),
)  # fmt: skip
_ENVIRONMENT = (
    ("XDG_CACHE_HOME", "Where the cache is."),
    ("XDG_DATA_HOME", "Where kernels of your own are."),
    (
        "FIRSTFLIGHT_UNJAILED",
        "Where the kernel has no Landlock, and so no jail can be made. Set to 1: load pages "
        "without one; `container`: the container that this runs in is the jail, if it shows to "
        "be one.",
    ),
    (
        "FIRSTFLIGHT_BROWSER",
        "The headless browser's program, for recordings and on the host's kernel, instead of "
        "the installed one and the root's.",
    ),
    (
        "FIRSTFLIGHT_DEBIAN_MIRROR",
        "Where Debian's packages are had from, instead of this machine's mirror: an address that "
        "ends with /debian and has debian-security beside it.",
    ),
    (
        "FIRSTFLIGHT_DEBIAN_ARCHIVE",
        "Where packages are had from that have left the mirror: a server with the layout of "
        "Debian's snapshot service.",
    ),
    ("FIRSTFLIGHT_LOCKED", "Set to 1: as --locked, for every command."),
)
_QUOTED = re.compile(r"`([^`]+)`")


def render_manual() -> str:
    """Return the whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH FIRSTFLIGHT 1 {_DATE} "{describe_version()}" "User Commands"'
    yield '.\\" Written by make reference, from the verbs.'
    yield from (".SH NAME", r"firstflight \- reproducible page loads, in virtual time")
    yield from (".SH SYNOPSIS", f".B {_text(PROGRAM)}", '.RI [ VERB " [" ARGUMENTS ]]')
    yield ".SH DESCRIPTION"
    yield from _prose(testbed.help or "")
    yield from (
        ".PP",
        f"The program is {_text(PROGRAM)} of its work tree; it sets up what a verb needs.",
    )
    yield ".SH VERBS"
    for words, command in _verbs(testbed, ()):
        yield from _verb(words, command)
    yield ".SH EXIT STATUS"
    yield from _terms(sorted(read_exit_codes().items(), key=lambda entry: int(entry[0])))
    yield ".SH ENVIRONMENT"
    yield from _terms(_ENVIRONMENT)
    yield ".SH FILES"
    yield from _terms(_FILES)
    yield from (".SH SEE ALSO", "The folder docs of the work tree.")


def _verbs(
    group: click.Group, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each verb that does something, with the words that lead to it."""
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _verbs(command, (*words, name))
        elif command is not None:
            yield (*words, name), command


def _verb(words: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(words))
    usage = " ".join(piece for piece in command.collect_usage_pieces(context))
    name = " ".join(words)
    yield f".SS {_text(name)} {_text(usage)}"
    yield from _prose(command.help or "")
    options = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and not set(parameter.opts) & set(context.help_option_names)
        if (record := parameter.get_help_record(context)) is not None
    ]
    yield from _terms(options)


def _prose(text: str) -> Iterator[str]:
    """Yield paragraphs; what is in backquotes is bold."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _bold(" ".join(paragraph.split()))


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in pairs:
        yield from (".TP", rf"\fB{_text(term)}\fR", _bold(" ".join(meaning.split())))


def _bold(text: str) -> str:
    return _QUOTED.sub(r"\\fB\1\\fR", _text(text))


def _text(text: str) -> str:
    """Return ``text`` so that roff(7) takes it as it is."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return r"\&" + escaped if escaped.startswith((".", "'")) else escaped
