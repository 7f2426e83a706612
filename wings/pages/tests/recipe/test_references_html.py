"""What a document loads, replaced to the byte."""

from __future__ import annotations

import pytest

from wings.pages.recipe.references import change_html


def urls(text: str) -> list[str]:
    found: list[str] = []

    def note(url: str) -> str:
        found.append(url)
        return url

    assert change_html(text, note) == text
    return found


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
def test_only_what_loads_is_a_url(text: str, expected: list[str]) -> None:
    assert urls(text) == expected


def test_attributes_are_replaced_where_they_stand() -> None:
    text = "<p>\n<img  alt='a' src=b.png\n><img srcset='c 1x,d 2x' style='e:url(f)'>&amp;</p>"
    assert change_html(text, lambda url: f"//h/{url}?1&2") == (
        "<p>\n<img  alt='a' src=\"//h/b.png?1&amp;2\"\n>"
        '<img srcset="//h/c?1&amp;2 1x, //h/d?1&amp;2 2x" '
        'style="e:url(&quot;//h/f?1&amp;2&quot;)">&amp;</p>'
    )


def test_what_is_cut_asks_for_nothing() -> None:
    text = '<link rel=stylesheet href="//x/a.css"><script src="//x/b.js"></script>'
    changed = change_html(text, lambda _: None)
    assert changed == text.replace("href", "data-outside-href").replace("src", "data-outside-src")
    assert urls(changed) == []


def test_a_new_url_cannot_leave_its_attribute() -> None:
    changed = change_html("<img src='a'>", lambda _: "\"'><script src=x>")
    assert urls(changed) == ["\"'><script src=x>"]


def test_a_base_is_refused() -> None:
    with pytest.raises(ValueError, match="<base>"):
        change_html("<base href='//x/'><img src=a>", lambda url: url)
