"""Rules of files that ask for commands in the lab: the words of both commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from testbed.kinds.client_rules import check_ticket_life
from testbed.kinds.command_rules import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.kinds.neighbour_rules import check_traffic
from testbed.model.command import LAB_PLACEHOLDERS
from testbed.model.traffic import NO_TRAFFIC, Neighbour, parse_traffic, second_page


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no command in the lab could do."""
    yield from check_commands(file, "command", LAB_PLACEHOLDERS)
    yield from check_commands(file, "peer", LAB_PLACEHOLDERS)
    yield from check_traffic(file)
    yield from check_ticket_life(file)
    if any(second_page(neighbours) for neighbours in _parsed(file)):
        yield f"{file.place(('traffic',))}: a second page has none to be second to; leave it out"


def _parsed(file: ExperimentFile) -> Iterator[tuple[Neighbour, ...]]:
    for text in file.all_of(("traffic",), NO_TRAFFIC):
        with suppress(ValueError):  # which is told above
            yield parse_traffic(text)
