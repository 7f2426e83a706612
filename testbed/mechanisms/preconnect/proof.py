"""PRECONNECT, verified by the capture: what was opened before anything was asked of its server.

A connection is early if its SYN left before the client knew of a request to that server; of the
page's own server, before it knew of the second one, for which one is open anyway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from testbed.base.seeding import guesses_right
from testbed.capture.flows import Flow
from testbed.proof.check import check, say_unshown
from testbed.proof.conduct import Server, server_of_flow, server_of_url
from testbed.proof.evidence import Evidence
from testbed.proof.load_time import held_ms

CLIENT = "graph"
SAME_MS = 0.01
"""A SYN and a request of one instant are no further apart."""


@check("preconnect", "condition", "load", "logs", "archive", "capture", "flows", "hosts", "served",
       source="TFO paper, section 8")  # fmt: skip
def check_preconnect(seen: Evidence) -> Iterator[str]:
    """Graph opened the connections that its hit rate draws at the start, and no other early.

    Nothing was asked of wrong guesses.  A lost look-up may keep it from opening one in time.
    """
    asked = seen.condition.preconnect_pct
    due = count_due(seen)
    if asked is not None and not (due and seen.load.client == CLIENT):
        yield say_unshown("preconnect_pct", asked)
    if seen.load.client != CLIENT:
        return
    early = list_early(seen)
    late = sum((due - Counter({server: len(flows) for server, flows in early.items()})).values())
    if late and not seen.lost:
        yield f"{late} of {due.total()} connections of PRECONNECT were not opened at the start"
    more = [server for server, flows in early.items() if len(flows) > due[server]]
    if more:
        yield f"{more[0][0]} has a connection that was opened before anything was asked of it"
    own = _own_server(seen)
    idle = sum(flow.ends not in seen.served_ends for flow in early.get(own, ()))
    if idle < due[own] and not late:
        yield f"of {due[own]} wrong guesses of PRECONNECT {due[own] - idle} were used"


def count_due(seen: Evidence) -> Counter[Server]:
    """Return how many early connections each server is to get."""
    hit_pct, own = seen.condition.preconnect_pct, _own_server(seen)
    if hit_pct is None:
        return Counter()
    servers = {(e.host, e.port) for e in seen.archive.entries if not e.after_load} - {own}
    return Counter(
        server if guesses_right(seen.trial.seed, server[0], hit_pct) else own for server in servers
    )


def list_early(seen: Evidence) -> dict[Server, list[Flow]]:
    """Return the early connections of each server; of the page's own all but the first."""
    zero_ns = seen.visits[0].zero_ns(seen.capture, seen.clients) or 0
    known_ms: dict[Server, list[float]] = defaultdict(list)
    for request in seen.load.requests:
        known_ms[server_of_url(request.url)].append(request.start_ms)
    same_ms = SAME_MS + held_ms(seen)
    own, early = _own_server(seen), defaultdict[Server, list[Flow]](list)
    for flow in sorted(seen.flows.flows, key=lambda flow: flow.syn.at_ns):
        server = server_of_flow(seen, flow)
        moments = sorted(known_ms[server])[int(server == own) :]
        if not moments or (flow.syn.at_ns - zero_ns) / 1e6 < moments[0] - same_ms:
            early[server].append(flow)
    early[own] = early[own][1:]
    return dict(early)


def _own_server(seen: Evidence) -> Server:
    root = seen.archive.entries[0]
    return root.host, root.port
