"""What the four rebuilt figures of a server under overload have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from wings.papers.reproductions.overload_curves import name_arm, price_connection_us
from wings.papers.tests.reproductions.overloads import PRICES, load_at, point, rebuilt

NAMES = ("overload-establishment", "overload-windows-clients", "overload-termination",
         "overload-segments")  # fmt: skip


def test_arms_have_the_publication_s_names() -> None:
    assert name_arm("abort rst-syn", "fin", 0) == "abort rst-syn"
    assert name_arm("abort rst-syn", "rst", 2) == "abort rst-syn close-rst win-emu"


def test_a_connection_costs_its_prices() -> None:
    assert price_connection_us(PRICES) == 950.0
    assert str(price_connection_us({})) == "nan"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("multiples", [(1.5,), (0.7, 1.0)])
def test_of_a_part_of_a_sweep_the_rest_is_not_measured(
    tmp_path: Path, name: str, multiples: tuple[float, ...]
) -> None:
    records = [
        point(load_at("default", multiple, close_rst=True), 700.0, 20.0) for multiple in multiples
    ]
    found = rebuilt(tmp_path, name, records)
    assert found.tables and found.story
    assert "not measured" in {check.agreement for check in found.checks}
