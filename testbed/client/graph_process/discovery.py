"""Dependency graph of the recorded page: when a browser would discover each resource.

What a document names is known when the parser gets to it, at the recorded fraction of the
document's body.  What a stylesheet or a script names is known when it has arrived and run.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Chrome's request priorities by kind, higher first (net/base/request_priority.h and Blink's
# resource load priorities): documents and stylesheets, then scripts and fonts, then the rest.
HIGHEST, MEDIUM, LOWEST = 2, 1, 0


class Node:
    """One resource: what to ask for, and its children by the moment at which they become known.

    ``on_body`` holds (fraction of the body, child), ascending; ``on_headers`` redirect targets;
    ``on_end`` (think time in s, child).
    """

    __slots__ = (
        "body_size",
        "host",
        "marks",
        "method",
        "on_body",
        "on_end",
        "on_headers",
        "parent",
        "port",
        "priority",
        "request_body_size",
        "revalidates",
        "target",
        "tls",
        "url",
    )

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.url: str = entry["url"]
        self.method: str = entry["method"]
        self.tls: bool = entry["tls"]
        self.host: str = entry["host"]
        self.port: int = entry["port"]
        self.target: str = entry["target"]
        self.body_size: int = entry["body_size"]
        self.request_body_size: int = entry["request_body_size"]
        self.revalidates: bool = entry["revalidates"]
        self.marks: list[str] = entry["marks"]
        self.parent: str | None = entry["parent"]
        self.priority = priority(entry["mime"])
        self.on_body: list[tuple[float, Node]] = []
        self.on_headers: list[Node] = []
        self.on_end: list[tuple[float, Node]] = []


def build_graph(entries: Sequence[Mapping[str, Any]], think_time: str) -> list[Node]:
    """Return the roots of the recorded graph; ``think_time`` is "recorded" or "none".

    The gap between an entry and its parent is a think time, times the entry's ``think_factor``.
    """
    nodes = [Node(entry) for entry in entries]
    first: dict[str, int] = {}
    for index, node in enumerate(nodes):
        first.setdefault(node.url, index)
    parsed: dict[int, list[int]] = {}
    roots = []
    for index, entry in enumerate(entries):
        parent = first.get(entry["parent"]) if entry["parent"] is not None else None
        if entry["how"] == "root":
            roots.append(nodes[index])
        elif parent is None or parent == index:
            continue  # never becomes known, and is reported as missing
        elif entry["how"] == "redirect":
            nodes[parent].on_headers.append(nodes[index])
        elif entry["how"] in ("parser", "frame") and "html" in entries[parent]["mime"]:
            parsed.setdefault(parent, []).append(index)
        else:
            gap_ms = entry["gap_ms"] if think_time == "recorded" else None
            think_ms = max(0.0, gap_ms or 0.0) * entry["think_factor"]
            nodes[parent].on_end.append((think_ms / 1000.0, nodes[index]))
    for parent, children in parsed.items():
        duration_ms = entries[parent]["dur_ms"]
        thresholds = [
            (fraction(duration_ms, entries[index]["gap_ms"], rank, len(children)), nodes[index])
            for rank, index in enumerate(children)
        ]
        nodes[parent].on_body = sorted(thresholds, key=lambda item: item[0])
    return roots


def fraction(duration_ms: float | None, gap_ms: float | None, rank: int, siblings: int) -> float:
    """Return how much of the document has arrived when a child is found, 0 to 1.

    ``gap_ms`` counts from the document's recorded end.  Without recorded times the children are
    spread evenly, in their order.
    """
    if duration_ms is None or gap_ms is None or duration_ms <= 0:
        return (rank + 1) / (siblings + 1)
    return min(1.0, max(0.0, (duration_ms + gap_ms) / duration_ms))


def priority(mime: str) -> int:
    """Return Chrome's class of priority for a media type."""
    if "html" in mime or "css" in mime:
        return HIGHEST
    if "javascript" in mime or "ecmascript" in mime or "font" in mime:
        return MEDIUM
    return LOWEST
