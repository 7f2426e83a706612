"""Neighbours of experiment files: what no trial could have of them."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.experiment_file import ExperimentFile
from testbed.model import LinkSpec
from testbed.model.traffic import NO_TRAFFIC, parse_traffic

_NO_HOP = "neighbours are not behind a last hop, and nothing is proven of both"
NOT_SHARED = {
    "ip": "neighbours are on IPv4 alone",
    "path_mtu_bytes": "whose packets were too long nobody counts on a line with neighbours",
    "hop_down": _NO_HOP,
    "hop_up": _NO_HOP,
}
"""The knobs of a link that is not shared, and why."""


def check_traffic(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each neighbour that no trial could have."""
    place = file.place(("traffic",))
    mtu_bytes = min(file.all_of(("link", "mtu_bytes"), LinkSpec().mtu_bytes))
    texts = file.all_of(("traffic",), NO_TRAFFIC)
    if file.in_real_time and set(texts) != {NO_TRAFFIC}:
        yield f'{place}: neighbours are in virtual time alone; take kernel.name = "virtual"'
    for name, why in NOT_SHARED.items() if set(texts) != {NO_TRAFFIC} else ():
        knob, usual = ("link", name), getattr(LinkSpec(), name)
        if any(value != usual for value in file.all_of(knob, usual)):
            yield f"{file.place(knob)}: {why}; leave it out, or traffic"
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
