"""What a style sheet loads, and what only looks like it."""

from __future__ import annotations

import pytest

from wings.pages.recipe.references import change_css, unescape_css


def urls(text: str) -> list[str]:
    found: list[str] = []

    def note(url: str) -> str:
        found.append(url)
        return url

    assert change_css(text, note) == text
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a{background:url(x.png)}", ["x.png"]),
        ("a{background:URL(  'x y.png' )}", ["x y.png"]),
        ('@import "a.css";@import url(b.css) print;', ["a.css", "b.css"]),
        ('@font-face{src:url(a?#x) format("y"),url("b.woff2")}', ["a?#x", "b.woff2"]),
        (r"a{background:url(a\ b\28 1\29.png)}", ["a b(1).png"]),
        ('a{content:"url(no.png)"} b{quotes:"x" "y"}', []),
        ("/* url(no.png) @import 'no.css' */", []),
        ('@namespace svg url("http://www.w3.org/2000/svg");a{b:url(c)}', ["c"]),
        ("a{width:curl(x)}", []),
        ("a{b:url(", []),
        ("a{b:'no end\n;c:url(d)}", ["d"]),
    ],
)  # fmt: skip
def test_only_what_loads_is_a_url(text: str, expected: list[str]) -> None:
    assert urls(text) == expected


def test_what_changes_is_replaced_and_the_rest_stays() -> None:
    text = "/*a*/@import 'a.css' screen;\nb { c : url( d.png ) no-repeat }"
    changed = change_css(text, lambda url: f"//h/{url}")
    assert changed == (
        '/*a*/@import url("//h/a.css") screen;\nb { c : url("//h/d.png") no-repeat }'
    )


def test_what_is_cut_asks_for_nothing() -> None:
    changed = change_css("@import 'a.css';b{c:url(d.png)}", lambda _: None)
    assert changed == '@import url("data:text/css,");b{c:url("data:,")}'


def test_a_new_url_cannot_end_the_text_it_stands_in() -> None:
    changed = change_css("a{b:url(c)}", lambda _: 'x"){}\n\\')
    assert urls(changed) == ['x"){}\n\\']


@pytest.mark.parametrize(
    ("raw", "plain"), [(r"\41 b", "Ab"), (r"\"", '"'), ("a\\\nb", "ab"), (r"\110000", "\ufffd")]
)
def test_escapes(raw: str, plain: str) -> None:
    assert unescape_css(raw) == plain
