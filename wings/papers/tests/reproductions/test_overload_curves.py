"""What the rebuilt figures of a server under overload have in common, and two of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.model import Record
from wings.papers.reproductions.overload_curves import name_arm, price_connection_us
from wings.papers.tests.reproductions.overloads import PRICES, load_at, point, rebuilt
from wings.papers.tests.reproductions.sweeps import check_at, checks_at
from wings.server_loads.spec import Mechanism

NAMES = ("overload-establishment", "overload-windows-clients", "overload-termination",
         "overload-segments")  # fmt: skip
# At the saturation, at 1.12 and at 1.4 times.
CURVES: tuple[tuple[Mechanism, bool, tuple[float, float, float]], ...] = (
    ("default", False, (1000.0, 850.0, 700.0)), ("default rst-fin", False, (1000.0, 1170.0, 800.0)),
    ("default", True, (1000.0, 1190.0, 820.0)), ("abort rst-syn", False, (1000.0, 950.0, 900.0)),
    ("abort rst-syn rst-fin", False, (1000.0, 1180.0, 1000.0)),
    ("abort rst-syn", True, (1000.0, 1200.0, 1040.0))
)  # fmt: skip
ABOVE: tuple[tuple[Mechanism, bool, float, float], ...] = (
    ("abort", True, 700.0, 1000.0), ("abort rst-syn", True, 720.0, 10.0),
    ("abort rst-syn", False, 900.0, 9.0), ("no-syn-drop", True, 880.0, 12.0)
)  # fmt: skip


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


def endings() -> list[Record]:
    return [point(load_at(arm, multiple, close_rst=close_rst), replies, 20.0)
            for arm, close_rst, curve in CURVES
            for multiple, replies in zip((1.0, 1.12, 1.4), curve, strict=True)]  # fmt: skip


def test_the_figure_of_endings_is_of_throughput(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, "overload-termination", endings())
    assert [figure.name for figure in found.figures] == ["throughput"]
    assert (
        "17.0 % higher with default rst-fin and 19.0 % higher with default close-rst"
        in (found.story[1])
    )


def test_what_is_stated_of_endings_beside_ours(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, "overload-termination", endings())
    peak, first, second = checks_at(found, "peak throughput of")
    assert (peak.what, peak.stated, peak.ours, peak.agreement) == (
        "peak throughput of default rst-fin over default, clients end with fin",
        "17 %", "17.0 %", "agrees",
    )  # fmt: skip
    assert [one.agreement for one in (first, second)] == ["agrees", "agrees"]
    coupled, reset = checks_at(found, "over default rst-fin, after the peak, clients")
    assert (coupled.stated, coupled.ours, coupled.agreement) == (
        "at least 20 %", "25.0 %", "agrees",
    )  # fmt: skip
    assert (reset.stated, reset.ours, reset.agreement) == ("30 %", "30.0 %", "agrees")
    assert check_at(found, "close-rst is comparable to rst-fin").agreement == "agrees"
    assert check_at(found, "increases when they are coupled").agreement == "agrees"


def windows_clients() -> list[Record]:
    found = []
    for arm, win_emu, replies, response_ms in ABOVE:
        found += [
            point(load_at(arm, 1.0, win_emu=win_emu), 999.0, 20.0),
            point(load_at(arm, 1.3, win_emu=win_emu), replies, response_ms, 30.0),
        ]
    return found


def test_windows_clients_are_an_arm_of_their_own(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, "overload-windows-clients", windows_clients())
    (grid,) = found.tables
    assert {row[0] for row in grid.rows} == {"abort win-emu", "abort rst-syn win-emu",
                                             "abort rst-syn", "no-syn-drop win-emu"}  # fmt: skip
    assert [figure.name for figure in found.figures] == ["throughput", "response-time", "failures"]
    assert "abort win-emu 700 a second after 1000 ms" in found.story[1]


def test_what_is_stated_of_windows_clients_beside_ours(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, "overload-windows-clients", windows_clients())
    agreeing = ("lower the throughput", "fails to improve", "comparable")
    assert {check_at(found, words).agreement for words in agreeing[:2]} == {"agrees"}
    assert check_at(found, agreeing[2]).ours == "in 2 of 2"
    orders = check_at(found, "mean response time of abort rst-syn below that of abort")
    assert (orders.stated, orders.agreement) == ("at least 2 orders of magnitude", "agrees")
    gain = check_at(found, "no-syn-drop over abort, Windows")
    assert (gain.ours, gain.agreement) == ("0.0 to 25.7 %", "differs")
    # At the saturation, and for that reason alone.
    assert gain.why.startswith("At 1 times the saturation.")
    assert "At the saturation nothing is dropped" in gain.why
