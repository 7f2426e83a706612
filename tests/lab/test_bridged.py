"""The access link as one wire: refused unless it is what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.base.errors import LabError, MissingError
from testbed.lab import bridged_link as bridged
from testbed.lab.bridged_link import open_wire
from testbed.lab.topology import Topology
from testbed.model import LinkSpec, Measurement


class Backend:
    """A link that is a word."""

    name, wire = "fake", "veth"
    knobs = frozenset({"rtt_ms", "loss_pct"})

    def __init__(self) -> None:
        self.complete = False

    @contextmanager
    def open(self, *_asked: object) -> Iterator[Any]:
        yield SimpleNamespace(complete=lambda: setattr(self, "complete", True))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The round trips that it measures, one after the other."""
    found: list[float] = []

    @contextmanager
    def bare(*_asked: object) -> Iterator[Topology]:
        yield Topology(*[None] * 4)  # type: ignore[arg-type]

    monkeypatch.setattr(bridged, "_bridged", bare)
    monkeypatch.setattr(
        bridged,
        "calibrate_bounded",
        lambda *_asked: (Measurement("rtt", "ms", found.pop(0), 20.0, 1.0),),
    )
    return found


def open_it(backend: Backend, spec: LinkSpec, tag: str = "t-") -> tuple[Measurement, ...]:
    with open_wire(spec, tag, backend) as wire:  # type: ignore[arg-type]
        return wire.measurements


def test_a_disturbed_measurement_is_taken_again(measured: list[float]) -> None:
    measured += [30.0, 20.1]
    backend = Backend()
    assert open_it(backend, LinkSpec(loss_pct=1))[0].measured == 20.1
    assert backend.complete  # after it was measured without


def test_a_link_without_its_delay_is_refused(measured: list[float]) -> None:
    measured += [0.1] * bridged.TRIES
    with pytest.raises(LabError, match=r"not what was asked, 3 times: rtt: measured 0.1 ms, asked"):
        open_it(Backend(), LinkSpec())


def test_so_is_what_the_backend_does_not_emulate(measured: list[float]) -> None:
    with pytest.raises(MissingError, match=r"cannot emulate link\.down_kbit = 5"):
        open_it(Backend(), LinkSpec(down_kbit=5))
    assert measured == []


def test_a_tag_is_part_of_a_file_name(measured: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot begin the name of a namespace"):
        open_it(Backend(), LinkSpec(), "../x")
    assert measured == []
