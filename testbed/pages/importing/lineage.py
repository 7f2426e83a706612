"""What led to what in a recording, as a table holds it: a tree, with redirects followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.pages.recording.exchange import Exchange
from testbed.pages.recording.har import redirect_target
from testbed.pages.recording.parentage import find_parents
from testbed.pages.table.row import REDIRECTS


@dataclass(frozen=True, slots=True)
class Lineage:
    """Positions of parents (``None``: the root), always earlier than their children.

    ``redirects`` has for each target of a redirect the response that redirects; each one leads to
    one target only.  ``document`` is the page's own document, behind the root's redirects.
    """

    parents: tuple[int | None, ...]
    redirects: dict[int, int]
    document: int
    notes: tuple[str, ...]


def find_lineage(exchanges: Sequence[Exchange]) -> Lineage:
    """Parents by initiator; targets of redirects by their ``Location``, or by the recorder's word.

    What a redirect led to besides its target belongs to the object at the end of the chain.
    """
    found = find_parents(tuple(exchanges))
    targets = _find_targets(exchanges, found.parents)
    redirects = {target: source for source, target in targets.items()}
    document = _chain_end(0, targets)
    parents: list[int | None] = []
    for index, parent in enumerate(found.parents):
        if index in redirects:
            parents.append(redirects[index])
        elif parent is None:
            parents.append(None)
        else:
            end = _chain_end(parent, targets, before=index)
            parents.append(end)
    return Lineage(tuple(parents), redirects, document, found.notes)


def _find_targets(exchanges: Sequence[Exchange], parents: Sequence[int | None]) -> dict[int, int]:
    """For each redirect that led somewhere, where to."""
    targets: dict[int, int] = {}
    taken: set[int] = set()
    for index, exchange in enumerate(exchanges):
        if exchange.status not in REDIRECTS:
            continue
        url = redirect_target(exchange.url, exchange.status, exchange.headers)
        for later in range(index + 1, len(exchanges)):
            other = exchanges[later]
            told = other.how == "redirect" and parents[later] == index
            if later not in taken and (told or other.url == url):
                targets[index] = later
                taken.add(later)
                break
    return targets


def _chain_end(index: int, targets: dict[int, int], before: int | None = None) -> int:
    """Where the redirects from ``index`` lead, as far as that was asked for before ``before``."""
    while index in targets and (before is None or targets[index] < before):
        index = targets[index]
    return index
