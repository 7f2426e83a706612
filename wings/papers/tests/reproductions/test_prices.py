"""Which claims depend on the price list."""

from __future__ import annotations

from pathlib import Path

from analysis.report.publications import Agreement, StatedCheck
from testbed.model import Record
from wings.papers.reproductions.prices import judge_claim
from wings.papers.tests.reproductions.overloads import load_at, point, rebuilt


def judged(**found: Agreement) -> tuple[str, str]:
    names = {"base": "model", "cheap": "model syn*0.5", "dear": "model syn*2",
             "close": "model close*2", "other": "shukla-2006"}  # fmt: skip
    return judge_claim({names[short]: StatedCheck("here", "a claim", "1", "2", verdict)
                        for short, verdict in found.items()})  # fmt: skip


def test_a_claim_that_all_lists_agree_on_is_robust() -> None:
    assert judged(base="agrees", dear="agrees", other="agrees") == ("by 3 of 3", "robust: agrees")
    assert judged(base="differs", dear="differs")[1] == "robust: differs"


def test_a_list_without_loads_says_nothing() -> None:
    assert judged(base="agrees", dear="not measured")[1] == "robust: agrees"
    assert judged(base="not measured")[1] == "not measured"


def test_a_claim_depends_on_the_price_that_turns_it() -> None:
    assert judged(base="agrees", cheap="agrees", dear="differs", close="agrees") == (
        "by 3 of 4", "depends on the price of a SYN",
    )  # fmt: skip
    found = judged(base="agrees", dear="differs", close="differs", other="differs")[1]
    assert found == "depends on the price of a SYN, the price of a close, the list"


def loads(prices: str, best: float) -> list[Record]:
    arms = {"default": 700.0, "abort": 690.0, "reserv": 710.0, "abort rst-syn": best}
    return [
        point(load_at(arm, multiple, prices=prices), replies, 100.0, 30.0)  # type: ignore[arg-type]
        for arm, top in arms.items()
        for multiple, replies in ((1.0, 999.0), (1.5, top))
    ]


def test_the_first_list_is_drawn_and_all_are_judged(tmp_path: Path) -> None:
    found = rebuilt(
        tmp_path, "overload-establishment", [*loads("model", 980.0), *loads("model syn*2", 720.0)]
    )
    curves, lists = found.tables
    assert len(curves.rows) == 8
    verdicts = {row[1]: row[-1] for row in lists.rows}
    gain = next(claim for claim in verdicts if "abort rst-syn over default" in str(claim))
    assert verdicts[gain] == "depends on the price of a SYN"
    assert len(found.figures) == 3
    assert "chosen, not measured" in found.figures[0].caption


def test_one_list_is_not_judged_against_itself(tmp_path: Path) -> None:
    assert len(rebuilt(tmp_path, "overload-establishment", loads("model", 980.0)).tables) == 1
