"""Path MTU: what is too long for the line stays out, and its sender is told of it, or is not.

A router that cannot pass a packet on says so to its sender, with the size that would pass (RFC 792,
RFC 1191); in a black hole nobody does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.capture.packets import Capture
from testbed.capture.routers import Ends, read_messages
from testbed.capture.transits import Transit
from testbed.model import LinkSpec
from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("path mtu", "capture", "at_server", "transits", "link", source="RFC 1191")
def check_path_mtu(seen: Evidence) -> Iterator[str]:
    """Packets too long for the line's path MTU stay out, and senders heed what routers say of it.

    In a black hole no router says anything.
    """
    link, traffic = seen.link, seen.counted
    captures = {"up": seen.capture, "down": seen.at_server}
    most = link.path_mtu_bytes
    if most is None:
        return
    for way, packets in seen.transits.items():
        long = [transit for transit in packets if transit.ip_bytes > most]
        passed = [transit.ip_bytes for transit in long if transit.came_ns is not None]
        if passed:
            yield (
                f"{way}: {len(passed)} packets of up to {max(passed)} bytes passed a line whose "
                f"path MTU is {most}"
            )
        counted = traffic.get(f"{way}.too_long", 0)
        if counted != len(long):
            yield f"{way}: {len(long)} packets were too long for the line, its router has {counted}"
        back = "up" if way == "down" else "down"
        lost, more = (
            sum(traffic.get(f"{back}.{how}", 0) for how in hows)
            for hows in (("lost", "dropped"), ("duplicated",))
        )
        yield from _check_messages(way, captures[way], long, link, (lost, more))


def _check_messages(
    way: str, capture: Capture, long: Sequence[Transit], link: LinkSpec, chance: tuple[int, int]
) -> Iterator[str]:
    """Yield a sentence where a sender was told otherwise, or did not heed what it was told.

    By ``chance`` the line lost so many packets on their way back, and doubled so many.
    """
    messages = read_messages(capture)
    last_ns = capture.packets[-1].at_ns if capture.packets else 0
    # Those of the last packets may still be on their way.
    due = sum(transit.sent_ns < last_ns - link.rtt_ms * 1e6 for transit in long)
    told = link.path_mtu_discovery == "icmp"
    lost, more = chance
    if not (due - lost) * told <= len(messages) <= (len(long) + more) * told:
        yield (
            f"{way}: {len(messages)} messages came back of {len(long)} packets that were too long, "
            f"asked was path_mtu_discovery = {link.path_mtu_discovery}"
        )
    wrong = {message.mtu_bytes for message in messages} - {link.path_mtu_bytes}
    if wrong:
        yield f"{way}: messages name an MTU of {min(wrong)}, asked was {link.path_mtu_bytes}"
    since: dict[Ends, int] = {}
    for message in messages:
        since.setdefault(message.ends, message.at_ns)
    late = sum(
        packet.ip_bytes > link.line_mtu_bytes and packet.at_ns > since[ends]
        for packet in capture.packets
        if (ends := (packet.source, packet.source_port, packet.target, packet.target_port)) in since
    )
    if late:
        yield f"{way}: {late} packets were still too long when their sender had been told"
