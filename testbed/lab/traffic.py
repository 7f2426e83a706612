"""What the link did with the packets of one load: delivered, dropped, lost, or vanished."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.lab.link.protocol import WAYS, LinkReport, Traffic
from testbed.model import LinkSpec
from testbed.model.impairments import ways

WAITING = "waiting"


def compare_reports(before: LinkReport, after: LinkReport) -> dict[str, int]:
    """Packets between two reports: ``down.delivered``, ``up.queue.ecn_mark``, and ``waiting``.

    ``waiting`` is by how many packets the link holds more than before.  ``duplicated`` and
    ``corrupted`` are there where any were.
    """
    counted = {WAITING: after.waiting_packets - before.waiting_packets}
    for way in WAYS:
        was, now = (_way(report, way) for report in (before, after))
        counted |= {
            f"{way}.delivered": now.delivered - was.delivered,
            f"{way}.dropped": now.dropped - was.dropped,
            f"{way}.lost": now.lost - was.lost,
            f"{way}.marked": now.marked - was.marked,
        }
        counted |= {
            f"{way}.queue.{name}": n - was.queue.get(name, 0) for name, n in now.queue.items()
        }
        more = {
            f"{way}.duplicated": now.duplicated - was.duplicated,
            f"{way}.corrupted": now.corrupted - was.corrupted,
        }
        counted |= {name: count for name, count in more.items() if count}
    return counted


def _way(report: LinkReport, way: str) -> Traffic:
    return report.down if way == "down" else report.up


def judge_traffic(counted: dict[str, int], inside: int, spec: LinkSpec) -> Iterator[str]:
    """A sentence for each packet count that an undisturbed link cannot have.

    Args:
        counted: from ``compare_reports``, and of mechanisms.
        inside: packets that went into the link and did not come out of it meanwhile.
        spec: what was asked; what the full buffer drops is in order, and no loss but the asked.
    """
    backwards = [name for name, count in counted.items() if count < 0 and name != WAITING]
    if backwards:
        yield f"the link began to count again during the load ({', '.join(backwards)})"
        return
    lost = sum(counted[f"{way}.lost"] for way in WAYS)
    unasked = sum(
        counted[f"{name}.lost"]
        for name, way in ways(spec).items()
        if not (way.loss_pct or way.bursts or spec.changes)
    )
    if unasked:
        yield f"{unasked} packets were lost on the link, asked was no loss"
    known = counted[WAITING] + lost + sum(counted[f"{way}.dropped"] for way in WAYS)
    known -= sum(counted.get(f"{way}.duplicated", 0) for way in WAYS)
    if inside != known:
        yield f"of the packets that went into the link {inside} did not come out, it says {known}"
