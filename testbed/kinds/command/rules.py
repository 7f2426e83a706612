"""Rules of files that ask for commands in the lab: the words of both commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from testbed.kinds.command_words import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.kinds.opening_words import check_openings
from testbed.kinds.traffic_words import check_traffic
from testbed.model.command import LAB_PLACEHOLDERS
from testbed.model.traffic import NO_TRAFFIC, Neighbour, parse_traffic, second_page


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no command in the lab could do."""
    yield from check_commands(file, "command", LAB_PLACEHOLDERS)
    yield from check_commands(file, "peer", LAB_PLACEHOLDERS)
    yield from check_traffic(file)
    yield from check_openings(file)
    has_neighbours = any(text != NO_TRAFFIC for text in file.all_of(("traffic",), NO_TRAFFIC))
    if has_neighbours and "lab" in file.all_of(("at",), "client"):
        yield (
            f"{file.place(('traffic',))}: neighbours begin with a command at an end of the link, "
            'and one outside begins at once; take at = "client" or "server"'
        )
    if any(second_page(neighbours) for neighbours in _parsed(file)):
        yield f"{file.place(('traffic',))}: a second page has none to be second to; leave it out"


def _parsed(file: ExperimentFile) -> Iterator[tuple[Neighbour, ...]]:
    for text in file.all_of(("traffic",), NO_TRAFFIC):
        with suppress(ValueError):  # which is told above
            yield parse_traffic(text)
