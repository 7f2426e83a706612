"""Price list of a server's work in virtual time, where computing takes none.

``prices.json`` has the list, and where it is from: by now a model and no measurement.  A connection
with one request costs about 50 us, so that a server takes about 20,000 of them a second.  The
saturation point of A. Shukla, T. Brecht: TCP Connection Management Mechanisms for Improving
Internet Server Performance (2006), section III, is 22,000.  The bench's ``server-price`` measures a
list on a host's kernel and leaves such a file.  ``native/ledger.h`` says how the server owes and
pays.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.model import ServerSpec


@dataclass(frozen=True, slots=True)
class PriceList:
    """What work costs the server's processor, in ns."""

    syn: int
    """Of the kernel: a SYN that arrives, whatever becomes of it."""
    segment: int
    """Of the kernel: any other segment that arrives or leaves, a SYN-ACK among them."""
    accept: int
    """Of program and kernel together: accept() and what a new connection needs."""
    request: int
    """Of both: to receive a request and to send its response."""
    close: int
    """Of both: to end a connection."""


FILE = Path(__file__).with_name("prices.json")
LIST = PriceList(**json.loads(FILE.read_text())["prices_ns"])


def price_work(server: ServerSpec) -> dict[str, int]:
    """Return the price of each piece of work, in ns by its name: ``server``'s multiple of LIST.

    The program's own work on a request is added to the price of one.
    """
    prices = {name: round(price * server.price) for name, price in asdict(LIST).items()}
    prices["request"] += round(server.request_cost_us * 1000)
    return prices
