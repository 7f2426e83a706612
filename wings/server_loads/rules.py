"""Rules of files that ask for loads on a server: the loop, both queues, and what work costs."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.experiment_file import ExperimentFile
from wings.server_loads.price_list import PARTS
from wings.server_loads.relative_rates import replace_relative
from wings.server_loads.spec import ArrivalSpec, ServerSpec

__all__ = ["find_problems", "replace_relative"]
_LOOPS = {"rate_per_s": "open", "spacing": "open", "clients": "closed"}
"""The loop that a knob of arrivals belongs to."""


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing in ``file`` that no load on a server could do."""
    yield from _of_another_loop(file)
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
