"""Rules of files that ask for page loads: neighbours, and the command of the client that is one."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.command_words import check_commands
from testbed.kinds.experiment_file import ExperimentFile
from testbed.model import LinkSpec
from testbed.model.command import CLIENT, LOAD_PLACEHOLDERS
from testbed.model.traffic import NO_TRAFFIC, parse_traffic


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no page load could do."""
    yield from _check_traffic(file)
    if CLIENT not in file.all_of(("client",), None):
        return
    if not any(file.all_of(("command",), "")):
        yield (
            f'{file.place(("command",))}: the client "{CLIENT}" has none to run; '
            'set command = "PROGRAM ..."'
        )
    yield from check_commands(file, "command", LOAD_PLACEHOLDERS)


def _check_traffic(file: ExperimentFile) -> Iterator[str]:
    place = file.place(("traffic",))
    mtu_bytes = min(file.all_of(("link", "mtu_bytes"), LinkSpec().mtu_bytes))
    texts = file.all_of(("traffic",), NO_TRAFFIC)
    if file.in_real_time and any(text != NO_TRAFFIC for text in texts):
        yield f'{place}: neighbours are in virtual time alone; take kernel.name = "virtual"'
    for name in ("corrupt_pct", "duplicate_pct"):
        knob = ("link", name)
        if any(file.all_of(knob, 0.0)) and any(text != NO_TRAFFIC for text in texts):
            yield (
                f"{file.place(knob)}: whose packets are damaged or doubled nobody counts on a line "
                "with neighbours; leave it out, or traffic"
            )
    ip = ("link", "ip")
    if any(text != NO_TRAFFIC for text in texts) and set(file.all_of(ip, "4")) != {"4"}:
        yield f"{file.place(ip)}: neighbours are on IPv4 alone; leave it out, or traffic"
    for text in texts:
        try:
            neighbours = parse_traffic(text)
        except ValueError as error:
            yield f"{place}: {error}"
            continue
        for each in neighbours:
            if each.packet_bytes > mtu_bytes:
                yield (
                    f"{place}: {each.text!r} has packets of {each.packet_bytes} bytes, and "
                    f"link.mtu_bytes is {mtu_bytes}; take smaller ones"
                )
