from __future__ import annotations

from pathlib import Path

from testbed.kinds.server_load.spec import Mechanism
from testbed.model import Record
from wings.papers.tests.reproductions.overloads import load_at, point, rebuilt
from wings.papers.tests.reproductions.sweeps import check_at, checks_at

NAME = "overload-termination"
# At the saturation, at 1.12 and at 1.4 times.
CURVES: tuple[tuple[Mechanism, bool, tuple[float, float, float]], ...] = (
    ("default", False, (1000.0, 850.0, 700.0)), ("default rst-fin", False, (1000.0, 1170.0, 800.0)),
    ("default", True, (1000.0, 1190.0, 820.0)), ("abort rst-syn", False, (1000.0, 950.0, 900.0)),
    ("abort rst-syn rst-fin", False, (1000.0, 1180.0, 1000.0)),
    ("abort rst-syn", True, (1000.0, 1200.0, 1040.0))
)  # fmt: skip


def sweep() -> list[Record]:
    return [point(load_at(arm, multiple, close_rst=close_rst), replies, 20.0)
            for arm, close_rst, curve in CURVES
            for multiple, replies in zip((1.0, 1.12, 1.4), curve, strict=True)]  # fmt: skip


def test_the_figure_is_of_throughput(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep())
    assert [figure.name for figure in found.figures] == ["throughput"]
    assert (
        "17.0 % higher with default rst-fin and 19.0 % higher with default close-rst"
        in (found.story[1])
    )


def test_what_is_stated_beside_ours(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, NAME, sweep())
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
