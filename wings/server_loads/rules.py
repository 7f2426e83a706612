"""Rules of files that ask for loads on a server: the loop, both queues, and what work costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from testbed.kinds.experiment_file import ExperimentFile
from wings.server_loads.price_list import PARTS
from wings.server_loads.relative_rates import replace_relative
from wings.server_loads.spec import ArrivalSpec, ServerSpec

__all__ = ["find_problems", "replace_relative"]
_BURSTS = ("every_s", "base_rate_per_s")
_LOOPS = {
    **dict.fromkeys(("rate_per_s", "spacing", "burst_s", *_BURSTS, "cool_down_s"), "open"),
    "clients": "closed",
}
"""The loop that a knob of arrivals belongs to."""
_LIST = "syn_timeouts_s"


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no load on a server could do."""
    yield from _of_another_loop(file)
    yield from _bursts(file)
    yield from _syn_timers(file)
    yield from _queues(file)
    yield from _without_a_price(file)
    yield from _two_lists(file)


def _of_another_loop(file: ExperimentFile) -> Iterator[str]:
    if file.is_swept("loop"):
        return
    loop = file.at(("arrivals", "loop")) or ArrivalSpec().loop
    for name, own in _LOOPS.items():
        path = ("arrivals", name)
        if own != loop and (file.is_swept(name) or file.at(path) is not None):
            yield (
                f'{file.place(path)}: has no meaning where loop = "{loop}"; '
                f'leave it out, or set loop = "{own}"'
            )


def _bursts(file: ExperimentFile) -> Iterator[str]:
    """A burst is a part of its period, at the higher of two rates."""
    spec = ArrivalSpec()
    bursts, every, base, rates = (
        file.all_of(("arrivals", name), getattr(spec, name))
        for name in ("burst_s", *_BURSTS, "rate_per_s")
    )
    if not any(bursts):
        for name in _BURSTS:
            if file.is_swept(name) or file.at(("arrivals", name)) is not None:
                yield (
                    f"{file.place(('arrivals', name))}: means nothing without bursts; set burst_s, "
                    "or leave it out"
                )
        return
    place = file.place(("arrivals", "burst_s"))
    if max(bursts) >= min(every):
        yield f"{place}: {max(bursts):g} s are no part of every_s = {min(every):g}; set it longer"
    if max(base) > min(rates):
        yield (
            f"{place}: between bursts base_rate_per_s = {max(base)} come, in them fewer, "
            f"rate_per_s = {min(rates)}; set a lower base_rate_per_s"
        )


def _syn_timers(file: ExperimentFile) -> Iterator[str]:
    """A kernel doubles its timer, up to a longest one of a second or more."""
    lists = [text for text in file.all_of(("arrivals", _LIST), "") if text]
    for text in lists:
        times = [float(word) for word in text.split()]
        if min(times) < 1 or any(not a <= b <= 2 * a for a, b in pairwise(times)):
            yield (
                f'{file.place(("arrivals", _LIST))}: no kernel can follow "{text}"; give times of '
                "1 s or more, none shorter than the one before it or more than twice as long"
            )
    for name in ("syn_timeout_s", "syn_retries", "syn_linear_timeouts") if lists else ():
        path = ("arrivals", name)
        if file.is_swept(name) or file.at(path) is not None:
            yield f"{file.place(path)}: {_LIST} says it; leave one of the two out"


def _queues(file: ExperimentFile) -> Iterator[str]:
    """The kernel has one backlog for both queues: that of handshakes cannot be the shorter one."""
    spec = ServerSpec()
    least = min(file.all_of(("server", "syn_backlog"), spec.syn_backlog))
    most = max(file.all_of(("server", "listen_backlog"), spec.listen_backlog))
    if least < most:
        knob = "listen_backlog" if file.at(("server", "listen_backlog")) else "syn_backlog"
        yield (
            f"{file.place(('server', knob))}: a SYN backlog of {least} is shorter than a "
            f"listen backlog of {most}, and the kernel has one for both; set syn_backlog to "
            f"{most} or more"
        )


def _without_a_price(file: ExperimentFile) -> Iterator[str]:
    """In virtual time work is paid for by the program that does it, and nginx cannot."""
    spec = ServerSpec()
    programs = file.all_of(("server", "program"), spec.program)
    prices = file.all_of(("server", "price"), spec.price)
    if "nginx" in programs and any(prices) and not file.in_real_time:
        yield (
            f"{file.place(('server', 'program'))}: nginx cannot pay for its work in virtual time, "
            f'so no load is too much for it there; set kernel.name = "host", or program = '
            f'"{spec.program}", or price = 0 for a server whose work is free'
        )


def _two_lists(file: ExperimentFile) -> Iterator[str]:
    """Prices of one's own are the list model, and no other list has room for them."""
    lists = file.all_of(("server", "prices"), ServerSpec().prices)
    if all(name.partition(" ")[0] == "model" for name in lists):
        return
    for part in PARTS:
        path = ("server", f"price_{part}_us")
        if file.is_swept(path[1]) or file.at(path) is not None:
            yield (
                f"{file.place(path)}: prices names a list that has its own; leave it out, or set "
                'prices = "model"'
            )
