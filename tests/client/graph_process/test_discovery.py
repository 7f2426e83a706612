"""When the recorded graph makes a resource known."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from testbed.client.graph_process.discovery import build_graph, fraction

ROOT = "http://a.test/"


def entry(url: str, how: str, parent: str | None = ROOT, **more: Any) -> dict[str, Any]:
    plain = {"method": "GET", "mime": "image/png", "body_size": 10, "request_body_size": 0}
    plain |= {"tls": False, "host": "a.test", "port": 80,
              "target": url.removeprefix("http://a.test")}  # fmt: skip
    plain |= {"revalidates": False, "marks": []}
    plain |= {"gap_ms": None, "dur_ms": None, "think_factor": 1.0}
    return {"url": url, "how": how, "parent": parent} | plain | more


PAGE = [
    entry(ROOT, "root", None, mime="text/html", dur_ms=100.0),
    entry("http://a.test/late.png", "parser", gap_ms=-10.0),
    entry("http://a.test/s.css", "parser", gap_ms=-60.0, mime="text/css"),
    entry("http://a.test/after.png", "parser", gap_ms=40.0),
    entry("http://a.test/bg.png", "css", "http://a.test/s.css", gap_ms=25.0),
    entry("http://a.test/go", "parser", gap_ms=-100.0),
    entry("http://a.test/gone", "redirect", "http://a.test/go", gap_ms=5.0),
    entry("http://a.test/orphan", "parser", "http://a.test/nowhere"),
]


def test_children_by_the_moment_at_which_they_become_known() -> None:
    (root,) = build_graph(PAGE, "recorded")
    known = [(share, child.url.rpartition("/")[2]) for share, child in root.on_body]
    assert known == [(0.0, "go"), (0.4, "s.css"), (0.9, "late.png"), (1.0, "after.png")]
    go, style = root.on_body[0][1], root.on_body[1][1]
    assert [child.url for child in go.on_headers] == ["http://a.test/gone"]
    assert [(think, child.url) for think, child in style.on_end] == [
        (0.025, "http://a.test/bg.png")
    ]
    assert style.priority > go.priority


def test_without_think_time() -> None:
    (root,) = build_graph(PAGE, "none")
    assert [think for think, _ in root.on_body[1][1].on_end] == [0.0]


def test_a_think_time_is_varied_by_its_own_factor() -> None:
    page = [dict(one, think_factor=1.2 if one["how"] == "css" else 7.0) for one in PAGE]
    (root,) = build_graph(page, "recorded")
    assert [share for share, _ in root.on_body] == [0.0, 0.4, 0.9, 1.0]
    assert [think for think, _ in root.on_body[1][1].on_end] == [0.03]


@given(
    duration=st.none() | st.floats(-1, 1e5),
    gap=st.none() | st.floats(-1e5, 1e5),
    siblings=st.integers(1, 300),
)
def test_a_fraction_is_a_fraction(duration: float | None, gap: float | None, siblings: int) -> None:
    shares = [fraction(duration, gap, rank, siblings) for rank in range(siblings)]
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert shares == sorted(shares)
