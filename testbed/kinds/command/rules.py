"""Rules of files that ask for commands in the lab: the words of both commands."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.command_words import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.kinds.traffic_words import check_traffic
from testbed.model.command import LAB_PLACEHOLDERS
from testbed.model.traffic import NO_TRAFFIC


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no command in the lab could do."""
    yield from check_commands(file, "command", LAB_PLACEHOLDERS)
    yield from check_commands(file, "peer", LAB_PLACEHOLDERS)
    yield from check_traffic(file)
    has_neighbours = any(text != NO_TRAFFIC for text in file.all_of(("traffic",), NO_TRAFFIC))
    if has_neighbours and "lab" in file.all_of(("at",), "client"):
        yield (
            f"{file.place(('traffic',))}: neighbours begin with a command at an end of the link, "
            'and one outside begins at once; take at = "client" or "server"'
        )
