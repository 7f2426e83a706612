"""Price list of a server's work in virtual time, where computing takes none.

The list is in the trial's server: one price for each kind of work, as knobs.  Their defaults are a
model and no measurement: a connection with one request costs about 50 us, so that a server takes
about 20,000 of them a second.  The saturation point of A. Shukla, T. Brecht: TCP Connection
Management Mechanisms for Improving Internet Server Performance (2006), section III, is 22,000.
The bench's ``server-price`` measures a list on a host's kernel.  ``native/ledger.h`` says how the
server owes and pays.
"""

from __future__ import annotations

from testbed.kinds.server_load.spec import ServerSpec


def price_work(server: ServerSpec) -> dict[str, int]:
    """Return the price of each piece of work, in ns by its name: ``server``'s multiple of its list.

    The program's own work on a request is added to the price of one.
    """
    listed_us = {
        "syn": server.price_syn_us,
        "segment": server.price_segment_us,
        "accept": server.price_accept_us,
        "request": server.price_request_us,
        "close": server.price_close_us,
    }
    prices = {name: round(1000 * us * server.price) for name, us in listed_us.items()}
    prices["request"] += round(server.request_cost_us * 1000)
    return prices
