"""Rules of files that ask for page loads: neighbours, and the command of the client that is one."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.command_words import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.kinds.traffic_words import check_traffic
from testbed.model.command import CLIENT, LOAD_PLACEHOLDERS
from testbed.model.traffic import NO_TRAFFIC


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no page load could do."""
    yield from _check_path_mtu(file)
    yield from _check_hops(file)
    yield from check_traffic(file)
    if CLIENT not in file.all_of(("client",), None):
        return
    if not any(file.all_of(("command",), "")):
        yield (
            f'{file.place(("command",))}: the client "{CLIENT}" has none to run; '
            'set command = "PROGRAM ..."'
        )
    yield from check_commands(file, "command", LOAD_PLACEHOLDERS)


def _check_hops(file: ExperimentFile) -> Iterator[str]:
    if any(text != NO_TRAFFIC for text in file.all_of(("traffic",), NO_TRAFFIC)):
        for name in ("hop_down", "hop_up"):
            if any(file.all_of(("link", name), "")):
                yield (
                    f"{file.place(('link', name))}: neighbours are not behind a last hop, and "
                    "nothing is proven of both; leave it out, or traffic"
                )


def _check_path_mtu(file: ExperimentFile) -> Iterator[str]:
    narrow = ("link", "path_mtu_bytes")
    if not any(file.all_of(narrow, None)):
        return
    if any(text != NO_TRAFFIC for text in file.all_of(("traffic",), NO_TRAFFIC)):
        yield (
            f"{file.place(narrow)}: whose packets were too long nobody counts on a line with "
            "neighbours; leave it out, or traffic"
        )
    names = (*(file.at(("tcp", "sysctl")) or {}), *file.values.get("sweep", {}))
    if any(name.endswith("ip_no_pmtu_disc") for name in names):
        yield (
            f"{file.place(narrow)}: by the sysctl ip_no_pmtu_disc packets are cut on their way, "
            "and pieces prove nothing; leave one of them out"
        )
