"""Ledger of a server in virtual time: what was charged for its work, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.proof.check import check
from wings.server_loads.account import count_segments
from wings.server_loads.evidence import HISTOGRAM_SHARE, ServedEvidence
from wings.server_loads.price_list import price_work


@check("ledger", "served_load", "counters")
def check_ledger(seen: ServedEvidence) -> Iterator[str]:
    """What the server paid is what happened, by the price list."""
    served, traffic = seen.served_load, seen.counted
    client, server = seen.client_counters, seen.counters["server"]
    prices, counts = served.prices_ns, served.server
    if not any(prices.values()):
        return
    syns, segments = counts["syns"], counts["segments"]
    # The ledger ends with the server: what its connections send then is in no ledger.
    least, most = counts["settled_segments"], count_segments(server)
    if not least <= syns + segments <= most:
        yield (
            f"the ledger has {syns + segments} segments, the server's kernel {least} before it "
            f"ended and {most} after it"
        )
    sent = client.get("TcpActiveOpens", 0) + client.get("TcpExtTCPSynRetrans", 0)
    # Some of many that are sent again at once may find no room in the clients' own queues.
    failed = client.get("TcpExtTCPRetransFail", 0)
    if (
        not sent - failed <= syns <= sent
        and not traffic.get("up.dropped")
        and not traffic.get("up.lost")
    ):
        yield f"the ledger has {syns} SYNs, the clients' kernel sent {sent}"
    if counts["unseen"]:
        yield f"{counts['unseen']} segments are not in the ledger"
    closed = sum(counts[name] for name in ("closed", "client_closed", "resets", "invalid"))
    owed = (
        syns * prices["syn"]
        + segments * prices["segment"]
        + counts["accepted"] * prices["accept"]
        + counts["requests"] * prices["request"]
        + closed * prices["close"]
    )
    if owed != counts["owed_ns"]:
        yield f"the ledger has {counts['owed_ns']} ns, the price list says {owed} ns"


@check("prices", "served_load")
def check_prices(seen: ServedEvidence) -> Iterator[str]:
    """The price list that was asked for was charged, and no other."""
    load, served = seen.asked, seen.served_load
    free = not seen.virtual_time or load.server.program == "nginx"
    asked = {} if free else price_work(load.server)
    if served.prices_ns != asked:
        yield f"the server paid {served.prices_ns} ns, asked was {asked}"
    busy = served.server_cpu_pct
    if busy is not None and not 0 <= busy <= 100 * (1 + HISTOGRAM_SHARE):
        yield f"the server's processor was busy for {busy:g} % of the time"
    if any(asked.values()) and busy is None:
        yield "the ledger does not say how busy the server's processor was"
