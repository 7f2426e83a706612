"""Counts of a load: both programs, both kernels and the link have to have the same."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.proof.check import check
from wings.server_loads.evidence import ServedEvidence


@check("generator", "served_load", "counters")
def check_generator(seen: ServedEvidence) -> Iterator[str]:
    """The generator was not itself the limit, and its counts are its kernel's."""
    served, client = seen.served_load, seen.client_counters
    if served.limits:
        yield f"the generator was itself the limit: it lacked {', '.join(served.limits)}"
    ended = served.answered + served.refused + served.reset + served.timed_out + served.broken
    if ended != served.started:
        yield f"{served.started} connections started, and {ended} ended"
    opened, least = client.get("TcpActiveOpens", 0), served.all_started + served.retries
    if opened < least or (not served.retries and opened != least):
        yield f"the clients' kernel opened {opened} connections, the generator {least}"


@check("server", "served_load", "counters")
def check_server(seen: ServedEvidence) -> Iterator[str]:
    """The server's program, its kernel and the clients count the same connections."""
    load, served, server = seen.asked, seen.served_load, seen.counters["server"]
    accepted, opened = served.server.get("accepted", 0), server.get("TcpPassiveOpens", 0)
    # The queue holds one more than its backlog (sk_acceptq_is_full).
    queues = load.server.workers * (load.server.listen_backlog + 1)
    if not 0 <= opened - accepted <= queues:
        yield f"the server accepted {accepted} connections, its kernel opened {opened}"
    responses = served.server.get("responses", 0)
    if responses < served.all_answered:
        yield f"the server sent {responses} responses, clients had {served.all_answered}"
    if seen.observed.workers != load.server.workers:
        yield f"the server had {seen.observed.workers} workers, asked were {load.server.workers}"
    lacked = served.server.get("lacked", 0)
    if lacked:
        yield f"the server lacked descriptors or memory for {lacked} connections"


@check("segments delivered", "served_load", "counters", "lab")
def check_link(seen: ServedEvidence) -> Iterator[str]:
    """Each kernel took the segments that the link delivered to it.

    The counters of both ends were read before the link's, and ``taken_later`` is what had been
    taken after that, where that was counted: in real time a segment may be sent again between two
    readings.  Some the server's management lets no further than its device.
    """
    traffic, counters, later = seen.counted, seen.counters, seen.observed.taken_later
    withheld = seen.served_load.management.get("withheld", 0)
    for way, end, less in (("up", "server", withheld), ("down", "client", 0)):
        delivered, taken = traffic[f"{way}.delivered"], counters[end]["TcpInSegs"]
        most = later.get(end, taken)
        if not taken <= delivered - less <= most:
            but = f" but for {less}" * bool(less)
            yield (
                f"the link delivered {delivered} packets{but} to the {end}, its kernel took {taken}"
                + f" to {most}" * (most != taken)
            )
