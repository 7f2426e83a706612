from __future__ import annotations

from pathlib import Path

from testbed.kinds.server_load.spec import Mechanism
from testbed.model import Record
from wings.papers.tests.reproductions.overloads import load_at, point, rebuilt
from wings.papers.tests.reproductions.sweeps import check_at

NAME = "overload-windows-clients"
ABOVE: tuple[tuple[Mechanism, bool, float, float], ...] = (
    ("abort", True, 700.0, 1000.0), ("abort rst-syn", True, 720.0, 10.0),
    ("abort rst-syn", False, 900.0, 9.0), ("no-syn-drop", True, 880.0, 12.0)
)  # fmt: skip


def sweep() -> list[Record]:
    found = []
    for arm, win_emu, replies, response_ms in ABOVE:
        found += [
            point(load_at(arm, 1.0, win_emu=win_emu), 999.0, 20.0),
            point(load_at(arm, 1.3, win_emu=win_emu), replies, response_ms, 30.0),
        ]
    return found


def test_windows_clients_are_an_arm_of_their_own(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep())
    (grid,) = found.tables
    assert {row[0] for row in grid.rows} == {
        "abort win-emu", "abort rst-syn win-emu", "abort rst-syn", "no-syn-drop win-emu",
    }  # fmt: skip
    assert [figure.name for figure in found.figures] == ["throughput", "response-time", "failures"]
    assert "abort win-emu 700 a second after 1000 ms" in found.story[1]


def test_what_is_stated_beside_ours(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep())
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
