from __future__ import annotations

from pathlib import Path

import pytest

from analysis.records.cells import flatten
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, LinkSpec, TcpSpec
from wings.papers import REFERENCES
from wings.papers.published.reference import published_rows, read_reference
from wings.papers.published.stated import Stated, parse_stated

PUBLISHED = sorted(path.stem for path in REFERENCES.glob("*.csv"))
NAMES = sorted({path.stem for path in REFERENCES.iterdir()})
HEADER = "place,quantity,unit,value,low,high"
AXES = flatten(Condition("amazon", "chromium", LinkSpec(100.0), TcpSpec(initcwnd_segments=3)))


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse_stated(text, "x.csv")
    return caught.value.problems


def write(folder: Path, table: str, notes: str | None = None) -> Path:
    (folder / "x.csv").write_text(table)
    if notes is not None:
        (folder / "x.toml").write_text(notes)
    return folder


def test_published_numbers_are_those_of_the_paper() -> None:
    reference = read_reference("fastopen-table1")
    found = {(page, int(rtt)): (row.plt_off_s, row.plt_on_s, row.improvement_pct)
             for (page, rtt), row in reference.rows.items()}  # fmt: skip
    assert found == {("amazon", 20): (1.54, 1.48, 4), ("amazon", 100): (2.60, 2.34, 10),
                     ("amazon", 200): (4.10, 3.66, 11), ("nytimes", 20): (3.70, 3.56, 4),
                     ("nytimes", 100): (4.59, 4.30, 6), ("nytimes", 200): (6.73, 5.55, 18),
                     ("wsj", 20): (5.74, 5.48, 5), ("wsj", 100): (7.08, 6.60, 7),
                     ("wsj", 200): (9.46, 8.47, 11), ("wikipedia", 20): (2.10, 1.95, 7),
                     ("wikipedia", 100): (3.49, 2.92, 16),
                     ("wikipedia", 200): (5.15, 3.03, 41)}  # fmt: skip
    for row in reference.rows.values():
        gain = (row.plt_off_s - row.plt_on_s) / row.plt_off_s * 100
        assert abs(gain - row.improvement_pct) <= 0.6


def test_published_numbers_hold_for_the_published_link_only() -> None:
    reference = read_reference("fastopen-table1")
    assert reference.find(AXES) is not None
    assert reference.find({**AXES, "up_kbit": 1000}) is None
    assert reference.find({**AXES, "rtt_ms": 50.0}) is None
    assert reference.find({**AXES, "page": "amazon-fit2011"}) == reference.find(AXES)


def test_every_published_deviation_has_its_row() -> None:
    reference = read_reference("fastopen-table1")
    bounds = {(one.axes["page"], one.axes["rtt_ms"]): one.high
              for one in reference.select("plt_deviation")}  # fmt: skip
    assert bounds.keys() == reference.rows.keys()
    assert {key for key, high in bounds.items() if high == 7} == {("amazon", 20)}


@pytest.mark.parametrize("name", ["no-such-table", "../reference/fastopen-table1"])
def test_an_unknown_publication_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_reference(name)
    assert str(caught.value).endswith(f"there are: {', '.join(NAMES)}")


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_publication_says_where_it_is_from_and_why_ours_differs(name: str) -> None:
    reference = read_reference(name)
    assert reference.title != name
    assert reference.citation.endswith(".")
    assert reference.stated
    assert reference.claims
    assert reference.differences
    assert all(one.why.endswith((".", ".)")) for one in reference.differences)


def test_the_transfer_times_that_are_stated() -> None:
    reference = read_reference("tum-initcwnd")
    found = {one.axes["initcwnd_segments"]: one.value for one in reference.select("duration")}
    assert found == {4: 1.3, 10: 1.1}
    gains = [(one.axes["rtt_ms"], one.value, one.unit) for one in reference.select("window_gain")]
    assert gains == [(200, 15, "%"), (40, 13, "%")]
    assert reference.select("no-such-quantity") == ()
    assert reference.rows == {}


def test_axes_are_typed_as_conditions_have_them() -> None:
    text = (f"{HEADER},page,rtt_ms,tfo,initcwnd_segments,requests_per_connection\n"
            "T,q,s,1,,,amazon,20,true,4,unlimited\n"
            '"T, 2",q,%,,8,,,0.5,,,2\n'
            "T,q,%,,,25,,,,,\n")  # fmt: skip
    assert parse_stated(text, "x.csv") == (
        Stated("T", "q", "s", 1.0, None, None, {
            "page": "amazon", "rtt_ms": 20.0, "tfo": True, "initcwnd_segments": 4,
            "requests_per_connection": None,
        }),
        Stated("T, 2", "q", "%", None, 8.0, None, {"rtt_ms": 0.5, "requests_per_connection": 2}),
        Stated("T", "q", "%", None, None, 25.0, {}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "decimals"),
    [("1,,", 0), ("1.00,,", 2), (",0.5,12", 1), (",,0.30", 2), ("1e3,,", 0), ("5e-3,,", 3)],
)
def test_a_value_keeps_its_digits(cells: str, decimals: int) -> None:
    (one,) = parse_stated(f"{HEADER}\nT,q,s,{cells}\n", "x.csv")
    assert one.decimals == decimals


def test_all_problems_of_a_table_at_once() -> None:
    text = (
        f"{HEADER},rtt_ms,tfo,initcwnd_segments\n"
        ",q,s,1,,,,,\n"
        "T,q,s,fast,,,,,\n"
        "T,q,s,1,0,2,,,\n"
        "T,q,s,,,,,,\n"
        "T,q,s,,3,2,,,\n"
        "T,q,s,nan,,,20s,perhaps,4.5\n"
        "T,q,s,1\n"
        "T,good,s,1,,,20,,\n"
        "T,good,s,2,,,20.0,,\n"
    )
    number = "Input should be a valid number, unable to parse string as a number"
    assert problems(text) == [
        "x.csv:2: place is '': Field required",
        f"x.csv:3: value is 'fast': {number}",
        "x.csv:4: both a value and a range; keep one",
        "x.csv:5: neither a value nor a range",
        "x.csv:6: the range begins at 3, above its end at 2",
        "x.csv:7: value is 'nan': Input should be a finite number",
        f"x.csv:7: rtt_ms is '20s': {number}",
        "x.csv:7: tfo is 'perhaps': Input should be a valid boolean, unable to interpret input",
        "x.csv:7: initcwnd_segments is '4.5': Input should be a valid integer, unable to parse "
        "string as an integer",
        "x.csv:8: 4 cells, expected 9",
        "x.csv:10: good is stated twice for the same knobs at T",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "x.csv:1: the columns begin with '', expected"),
        ("place,value\n", "x.csv:1: the columns begin with 'place,value', expected"),
        (f"{HEADER},rtt\nT,q,s,1,,,2\n", "x.csv:1: no knob is named 'rtt' (did you mean 'rtt_ms'?"),
        (f"{HEADER},tfo,tfo\nT,q,s,1,,,,\n", "x.csv:1: the column tfo is there twice"),
        (f"{HEADER}\n", "x.csv:1: there are no rows"),
    ],
)
def test_a_wrong_head(text: str, problem: str) -> None:
    (found,) = problems(text)
    assert found.startswith(problem)


def test_rows_are_tables_of_load_times_only() -> None:
    text = (f"{HEADER},page,rtt_ms,tfo,initcwnd_segments\n"
            "T,plt,s,2,,,a,20,false,\n"
            "T,plt,s,1,,,a,20,true,\n"
            "T,improvement,%,50,,,a,20,,\n"
            "T,plt,s,3,,,a,100,false,\n"
            "T,plt,s,3,,,b,20,false,4\n"
            "T,improvement,%,,5,20,b,20,,\n")  # fmt: skip
    rows = published_rows(parse_stated(text, "x.csv"))
    assert {key: (row.plt_off_s, row.plt_on_s, row.source) for key, row in rows.items()} == {
        ("a", 20.0): (2.0, 1.0, "T")
    }


def test_a_table_without_notes_has_its_name(tmp_path: Path) -> None:
    reference = read_reference("x", write(tmp_path, f"{HEADER}\nT,q,s,1,,\n"))
    assert (reference.title, reference.citation, reference.applies) == ("x", "x", {})


def test_problems_of_table_and_notes_come_together(tmp_path: Path) -> None:
    notes = 'titel = "T"\n[[difference]]\nwhat = "W"\n[[sentence]]\nplace = ""\nsays = 3\n'
    with pytest.raises(ConfigurationError) as caught:
        read_reference("x", write(tmp_path, f"{HEADER}\nT,,s,1,,\n", notes))
    found = caught.value.problems
    assert [problem.partition(": ")[0] for problem in found] == ["x.csv:2", *["x.toml"] * 4]
    assert {problem.split(": ")[1] for problem in found[1:]} == {
        "titel", "difference.0.why", "sentence.0.place", "sentence.0.says",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("notes", "problem"),
    [("title = ", "x.toml: not TOML: "),
     ("[applies]\nrtt = 20\n", "x.toml: applies.rtt: no knob is named so (did you mean 'rtt_ms")]
)  # fmt: skip
def test_wrong_notes(tmp_path: Path, notes: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_reference("x", write(tmp_path, f"{HEADER}\nT,q,s,1,,\n", notes))
    assert caught.value.problems[0].startswith(problem)
