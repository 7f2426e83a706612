"""Rules of files that ask for page loads: neighbours, openings, the client that is a command."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.client_rules import check_clients, check_ticket_life
from testbed.kinds.command_rules import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.kinds.neighbour_rules import check_traffic
from testbed.model.command import CLIENT, LOAD_PLACEHOLDERS


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no page load could do."""
    yield from _check_path_mtu(file)
    yield from check_traffic(file)
    yield from check_ticket_life(file)
    yield from check_clients(file)
    if CLIENT not in file.all_of(("client",), None):
        return
    if not any(file.all_of(("command",), "")):
        yield (
            f'{file.place(("command",))}: the client "{CLIENT}" has none to run; '
            'set command = "PROGRAM ..."'
        )
    yield from check_commands(file, "command", LOAD_PLACEHOLDERS)


def _check_path_mtu(file: ExperimentFile) -> Iterator[str]:
    narrow = ("link", "path_mtu_bytes")
    if not any(file.all_of(narrow, None)):
        return
    names = (*(file.at(("tcp", "sysctl")) or {}), *file.values.get("sweep", {}))
    if any(name.endswith("ip_no_pmtu_disc") for name in names):
        yield (
            f"{file.place(narrow)}: by the sysctl ip_no_pmtu_disc packets are cut on their way, "
            "and pieces prove nothing; leave one of them out"
        )
