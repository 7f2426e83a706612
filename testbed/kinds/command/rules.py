"""Rules of files that ask for commands in the lab: the words of both commands."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.command_words import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.model.command import LAB_PLACEHOLDERS


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no command in the lab could do."""
    yield from check_commands(file, "command", LAB_PLACEHOLDERS)
    yield from check_commands(file, "peer", LAB_PLACEHOLDERS)
