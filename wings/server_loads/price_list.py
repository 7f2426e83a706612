"""Price list of a server's work in virtual time, where computing takes none.

A list has a price for each kind of work; ``ServerSpec.prices`` names one.  ``model`` is the knobs
``price_*_us``, whose defaults are round guesses: a connection with one request costs 47.5 us.  The
others are proportions, by which a connection costs the same, so that a saturation holds for all.
``native/ledger.h`` says how the server owes and pays.

Sources: A. Shukla, T. Brecht: TCP Connection Management Mechanisms for Improving Internet Server
Performance (2006), Table II; the bench's ``server-price``.
"""

from __future__ import annotations

from collections.abc import Mapping

from wings.server_loads.spec import ServerSpec

SEGMENTS = 9
"""Of a connection on its own, beside its SYN, in both directions: SYN-ACK, ACK, request and
response with an ACK of each, FIN, FIN with ACK, and ACK."""
PARTS = ("syn", "segment", "accept", "request", "close")
LISTS_US = {
    # 120 s of a busy processor are 2,640,011 connections, or 2,372,030 and 2,736,179 more segments
    # that establish connections, or 2,236,980 and 5,739,707 more.  By least squares one of these
    # costs 7.5 % of a connection's 45.5 us: a SYN, or the ACK of a SYN-ACK with that SYN-ACK.  The
    # rest, of which the source says nothing, is divided as by the model.
    "shukla-2006": (3.425, 1.7125, 6.654, 13.308, 6.654),
    # An AMD EPYC in a virtual machine, Linux 6.18, 2026-11-23, n = 8 (README.md).
    "measured-2026": (10.0, 1.2, 70.5, 6.8, 70.5),
}
"""Prices of PARTS, in us, as they were found."""
ORIGINS = {
    "model": "chosen, not measured",
    "shukla-2006": "calibrated by Table II of Shukla and Brecht (2006)",
    "measured-2026": "measured on one machine of 2026",
}


def connection_price(prices: Mapping[str, float]) -> float:
    """Return the price of one connection that ends with FINs, in the unit of ``prices``."""
    return prices["segment"] * (SEGMENTS - 1) + sum(prices[part] for part in PARTS)


def list_prices_us(server: ServerSpec) -> dict[str, float]:
    """Return ``server``'s list in us, by its parts, before it is multiplied by ``price``."""
    name, _, varied = server.prices.partition(" ")
    own = {part: getattr(server, f"price_{part}_us") for part in PARTS}
    cost_us = connection_price(own)
    prices = dict(zip(PARTS, LISTS_US[name], strict=True)) if name in LISTS_US else dict(own)
    if varied:
        part, _, factor = varied.partition("*")
        prices[part] *= float(factor)
    total_us = connection_price(prices)
    scale = cost_us / total_us if total_us else 1.0
    return {part: price_us * scale for part, price_us in prices.items()}


def price_work(server: ServerSpec) -> dict[str, int]:
    """Return the price of each piece of work, in ns by its name: ``server``'s multiple of its list.

    The program's own work on a request is added to the price of one.
    """
    prices = {part: round(1000 * us * server.price) for part, us in list_prices_us(server).items()}
    prices["request"] += round(server.request_cost_us * 1000)
    return prices
