"""Rules of files that ask for commands in the lab: the words of both commands."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.command_words import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.model.command import LAB_PLACEHOLDERS
from testbed.model.traffic import NO_TRAFFIC


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no command in the lab could do."""
    yield from check_commands(file, "command", LAB_PLACEHOLDERS)
    yield from check_commands(file, "peer", LAB_PLACEHOLDERS)
    if any(text != NO_TRAFFIC for text in file.all_of(("traffic",), NO_TRAFFIC)):
        yield (
            f"{file.place(('traffic',))}: a command alone in the lab has no neighbours; leave "
            'them out, or make it the client of a page load: client = "command"'
        )
