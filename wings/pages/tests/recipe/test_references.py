"""What style sheets and documents load, replaced to the byte, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wings.pages.recipe.references import Change, change_css, change_html, unescape_css


def urls(change: Callable[[str, Change], str], text: str) -> list[str]:
    found: list[str] = []

    def note(url: str) -> str:
        found.append(url)
        return url

    assert change(text, note) == text
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
def test_only_what_a_style_sheet_loads_is_a_url(text: str, expected: list[str]) -> None:
    assert urls(change_css, text) == expected


def test_what_changes_is_replaced_and_the_rest_stays() -> None:
    text = "/*a*/@import 'a.css' screen;\nb { c : url( d.png ) no-repeat }"
    changed = change_css(text, lambda url: f"//h/{url}")
    assert changed == (
        '/*a*/@import url("//h/a.css") screen;\nb { c : url("//h/d.png") no-repeat }'
    )


def test_what_is_cut_from_a_style_sheet_asks_for_nothing() -> None:
    changed = change_css("@import 'a.css';b{c:url(d.png)}", lambda _: None)
    assert changed == '@import url("data:text/css,");b{c:url("data:,")}'


def test_a_new_url_cannot_end_the_text_it_stands_in() -> None:
    changed = change_css("a{b:url(c)}", lambda _: 'x"){}\n\\')
    assert urls(change_css, changed) == ['x"){}\n\\']


@pytest.mark.parametrize(
    ("raw", "plain"), [(r"\41 b", "Ab"), (r"\"", '"'), ("a\\\nb", "ab"), (r"\110000", "\ufffd")]
)
def test_escapes(raw: str, plain: str) -> None:
    assert unescape_css(raw) == plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<IMG alt=x SRC = "a.png">', ["a.png"]),
        ("<img src=a.png alt='>'><script src='b.js'></script>", ["a.png", "b.js"]),
        ('<img srcset="a.png 1x, b.png 2x" src=c.png>', ["a.png", "b.png", "c.png"]),
        ('<link rel="shortcut icon" href=a.ico><link rel=canonical href=no>', ["a.ico"]),
        ('<link rel="alternate stylesheet" href=a.css>', ["a.css"]),
        ('<a href="no.html"><form action=no></form></a>', []),
        ('<p style="background:url(&quot;a.png&quot;)">', ["a.png"]),
        ("<style>b{c:url(a.png)}</style><p>url(no.png)", ["a.png"]),
        ("<!-- <img src=no.png> --><script>'<img src=no.png>'</script>", []),
        ('<img src="a.png?b=1&amp;c=2">', ["a.png?b=1&c=2"]),
        ("<video poster=a.png><source src=b.mp4></video>", ["a.png", "b.mp4"]),
        ("é\n\n<p>é</p>\r\n<img src=a.png>\n<style>\n@import 'b.css'</style>", ["a.png", "b.css"]),
        ("<img src>", []),
        ("<img", []),
    ],
)
def test_only_what_a_document_loads_is_a_url(text: str, expected: list[str]) -> None:
    assert urls(change_html, text) == expected


def test_attributes_are_replaced_where_they_stand() -> None:
    text = "<p>\n<img  alt='a' src=b.png\n><img srcset='c 1x,d 2x' style='e:url(f)'>&amp;</p>"
    assert change_html(text, lambda url: f"//h/{url}?1&2") == (
        "<p>\n<img  alt='a' src=\"//h/b.png?1&amp;2\"\n>"
        '<img srcset="//h/c?1&amp;2 1x, //h/d?1&amp;2 2x" '
        'style="e:url(&quot;//h/f?1&amp;2&quot;)">&amp;</p>'
    )


def test_what_is_cut_from_a_document_asks_for_nothing() -> None:
    text = '<link rel=stylesheet href="//x/a.css"><script src="//x/b.js"></script>'
    changed = change_html(text, lambda _: None)
    assert changed == text.replace("href", "data-outside-href").replace("src", "data-outside-src")
    assert urls(change_html, changed) == []


def test_a_new_url_cannot_leave_its_attribute() -> None:
    changed = change_html("<img src='a'>", lambda _: "\"'><script src=x>")
    assert urls(change_html, changed) == ["\"'><script src=x>"]


def test_a_base_is_refused() -> None:
    with pytest.raises(ValueError, match="<base>"):
        change_html("<base href='//x/'><img src=a>", lambda url: url)
