"""Commands of experiment files: their words, and the program that trials will look for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from testbed.base.suggest import did_you_mean
from testbed.kinds.experiment_file import ExperimentFile, toml_text
from testbed.model.command import FOLDER, placeholders_of, split_words

# A trial has the machine's /usr, and these as links into it.
SYSTEM = ("/usr/", "/bin/", "/sbin/")


def check_commands(file: ExperimentFile, name: str, placeholders: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each thing that no trial could do in commands that a knob has."""
    for command in file.all_of((name,), ""):
        for problem in find_problems(command, placeholders, file.has_folder):
            yield f"{file.place((name,))}: {toml_text(command)}: {problem}"


def find_problems(command: str, placeholders: Collection[str], has_folder: bool) -> Iterator[str]:
    """Yield a sentence for each thing in ``command`` that no trial could do; none is allowed.

    Args:
        command: the command; empty is no command, and right.
        placeholders: the names that may be in braces.
        has_folder: whether there is a folder of the user's files.
    """
    if not command:
        return
    try:
        words = split_words(command)
    except ValueError as error:
        yield f"cannot be split into words: {error}"
        return
    used = placeholders_of(words)
    for name in used:
        if name not in placeholders:
            yield (
                f"no placeholder is named {{{name}}}{did_you_mean(name, placeholders)}; "
                f"placeholders: {', '.join(placeholders)}"
            )
    if FOLDER in used and not has_folder:
        yield f"{{{FOLDER}}} is the folder that command_folder names, and there is none; set it"
    program = words[0]
    if "/" in program and not program.startswith((f"{{{FOLDER}}}/", *SYSTEM)):
        name = PurePosixPath(program).name
        yield (
            f"trials have nothing of this machine but /usr, so there is no {program}; put it into "
            f"a folder, name that with command_folder, and write {{{FOLDER}}}/{name}"
        )
