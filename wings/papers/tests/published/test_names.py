"""Names of a publication that nobody has, and quantities that nothing measures."""

from __future__ import annotations

import pytest

from testbed.base import places
from testbed.base.errors import ConfigurationError
from wings.papers import REFERENCES
from wings.papers.published.names import find_metrics, refuse_unknown, scale
from wings.papers.published.reference import Reference, read_reference
from wings.papers.published.stated import parse_stated

HEADER = "place,quantity,unit,value,low,high,"


def reference(text: str, **more: object) -> Reference:
    given = {"name": "x", "title": "X", "citation": "X", "stated": parse_stated(text, "x.csv")}
    return Reference.model_validate(given | more)


def refused(found: Reference, kind: str = "page_load") -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        find_metrics(found, kind)
    return caught.value.problems


def test_every_name_of_the_committed_publications_is_there() -> None:
    pages = {folder.name for folder in places.PAGES.iterdir()}
    names = sorted(path.stem for path in REFERENCES.glob("*.csv"))
    assert names
    for name in names:
        refuse_unknown(read_reference(name), {"page": pages, "client": (), "scenario": ()})


@pytest.mark.parametrize("knob", ["page", "client", "scenario"])
def test_a_name_that_nobody_has_is_told_once_with_its_line(knob: str) -> None:
    found = reference(f"{HEADER}{knob}\nT,q,s,1,,,there\nT,q,s,2,,,ther\n")
    refuse_unknown(found, {})  # who knows no names looks at none
    with pytest.raises(ConfigurationError) as caught:
        refuse_unknown(found, {knob: {"there"}})
    (problem,) = caught.value.problems
    assert problem.startswith(f"x.csv:3: {knob}: no {knob} is named 'ther' (did you mean 'there'?)")
    assert ("x.toml" in problem) == (knob == "page")


def test_a_published_page_that_one_of_ours_stands_for() -> None:
    text = f"{HEADER}page\nT,q,s,1,,,theirs\n"
    refuse_unknown(reference(text, variants={"ours": "theirs"}), {"page": {"ours"}})


def test_quantities_are_metrics_in_their_unit_or_in_seconds() -> None:
    found = reference(f"{HEADER}rtt_ms\nT,plt,s,1,,,1\nT,plt_ms,ms,1,,,1\nT,improvement,%,1,,,1\n")
    metrics = find_metrics(found, "page_load")
    assert {name: metric.name for name, metric in metrics.items()} == {
        "plt": "plt_ms",
        "plt_ms": "plt_ms",
    }
    assert [scale(metrics[one.quantity], one) for one in found.stated[:2]] == [1000.0, 1.0]
    served = reference(f"{HEADER}rate_per_s\nT,failed,%,1,,,100\nT,replies_per_s,1/s,1,,,100\n")
    assert [one.name for one in find_metrics(served, "server_load").values()] == [
        "failed_pct",
        "replies_per_s",
    ]


@pytest.mark.parametrize(
    ("row", "knob", "told"),
    [
        ("T,gain,%,1,,,1", "rtt_ms", "x.csv:2: quantity: trials of the kind page_load are not"),
        ("T,plt,%,1,,,1", "rtt_ms", "x.csv:2: unit: plt is measured in ms, not in %; state it in"),
        ("T,improvement,s,1,,,1", "rtt_ms", "x.csv:2: unit: improvement is in %, not s"),
        ("T,plt,s,1,,,1", "rate_per_s", "x.csv:2: rate_per_s: trials of the kind page_load have"),
        ("T,plt,s,1,,,1.5", "rate_of_saturation", "x.csv:2: rate_of_saturation: trials of the"),
    ],
)
def test_what_nothing_measures_is_refused(row: str, knob: str, told: str) -> None:
    (problem,) = refused(reference(f"{HEADER}{knob}\n{row}\n"))
    assert problem.startswith(told)


def test_claims_of_a_quantity_need_a_module() -> None:
    claim = {"says": "It is so", "quantity": "plt"}
    (problem,) = refused(reference(f"{HEADER}rtt_ms\nT,plt,s,1,,,1\n", claim=[claim]))
    assert problem.startswith("x.toml: claim: claims of a quantity are held to the tables of a ")
