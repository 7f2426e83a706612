"""The newest packages are chosen, with all that they need."""

from __future__ import annotations

from itertools import pairwise

import pytest

from testbed.base.errors import MissingError
from testbed.root.index import Index, is_newer, parse_packages

PARAGRAPH = """\
Package: {name}
Version: {version}
Architecture: {architecture}
{more}Description: a text
 of two lines
Filename: pool/main/{name}.deb
Size: 5
SHA256: {zeroes}
"""


def offer(name: str, version: str = "1.0", architecture: str = "amd64", **fields: str) -> str:
    more = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    return PARAGRAPH.format(
        name=name, version=version, architecture=architecture, more=more, zeroes="0" * 64
    )


def closure(
    *paragraphs: str, wanted: tuple[str, ...] = ("a",), without: frozenset[str] = frozenset()
) -> dict[str, str]:
    index = Index(parse_packages("\n".join(paragraphs), "debian"))
    return {package.name: package.version for package in index.closure(wanted, without)}


def test_what_is_needed_comes_too() -> None:
    offers = (
        offer("a", Depends="b (>= 2), c:any | d", Pre_Depends="e [amd64]"),
        *(offer(name) for name in "bcdef"),
    )
    assert set(closure(*offers)) == set("abce")


def test_an_alternative_that_is_wanted_anyway_is_taken() -> None:
    offers = (offer("a", Depends="c | d"), offer("c"), offer("d"))
    assert set(closure(*offers, wanted=("a", "d"))) == {"a", "d"}


def test_another_may_provide_it() -> None:
    offers = (offer("a", Depends="gone | virtual"), offer("b", Provides="virtual (= 2)"))
    assert set(closure(*offers)) == {"a", "b"}


def test_some_are_left_out() -> None:
    offers = (offer("a", Depends="b, c"), offer("b", Depends="d"), offer("c"), offer("d"))
    assert set(closure(*offers, without=frozenset("b"))) == {"a", "c"}


def test_the_newest_counts_and_other_machines_do_not() -> None:
    offers = (offer("a", "1.9"), offer("a", "1.10"), offer("a", "2", "arm64"), offer("a", "1.2"))
    assert closure(*offers) == {"a": "1.10"}


def test_all_that_is_not_offered_is_said() -> None:
    with pytest.raises(MissingError) as raised:
        closure(offer("a", Depends="b | c, d"), offer("d"), wanted=("a", "z"))
    assert str(raised.value).splitlines() == [
        "the root wants z, which is not offered",
        "a needs b | c, which is not offered",
    ]


def test_versions_are_ordered_as_debian_orders_them() -> None:
    rising = (
        "0.9~~", "0.9~", "0.9~rc1", "0.9", "0.9-1~deb12u1", "0.9-1", "0.9-1+b1", "0.9-1.1",
        "0.9-2", "0.9a", "0.9+dfsg-1", "0.09.1", "0.10", "1.0-1-1", "1:0.1",
    )  # fmt: skip
    for older, newer in pairwise(rising):
        assert is_newer(newer, older), (newer, older)
        assert not is_newer(older, newer), (older, newer)
    assert not is_newer("1.0", "1.0-0")
