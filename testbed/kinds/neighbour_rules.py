"""Neighbours of experiment files: what no trial could have of them."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.experiment_file import ExperimentFile
from testbed.model import LinkSpec
from testbed.model.traffic import NO_TRAFFIC, parse_traffic


def check_traffic(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each neighbour that no trial could have."""
    place = file.place(("traffic",))
    mtu_bytes = min(file.all_of(("link", "mtu_bytes"), LinkSpec().mtu_bytes))
    texts = file.all_of(("traffic",), NO_TRAFFIC)
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
