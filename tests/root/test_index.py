"""The newest packages are chosen, with all that they need."""

from __future__ import annotations

from itertools import pairwise

import pytest

from testbed.base.errors import MissingError
from testbed.root.index import Index, is_newer, parse_packages
from testbed.root.lock import LockedPackage

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


def renew(
    *paragraphs: str, locked: dict[str, str], gone: str, without: frozenset[str] = frozenset()
) -> dict[str, str]:
    index = Index(parse_packages("\n".join(paragraphs), "debian"))
    there = [LockedPackage(name, version, "debian", f"pool/{name}.deb", 5, "1" * 64)
             for name, version in locked.items()]  # fmt: skip
    moved = [package for package in there if package.name in gone.split()]
    return {package.name: package.version for package in index.renew(there, moved, without)}


ABC = {"a": "1", "b": "1", "c": "1"}


def test_only_what_is_gone_is_replaced() -> None:
    offers = [offer(name, "2") for name in "abc"]
    assert renew(*offers, locked=ABC, gone="b") == ABC | {"b": "2"}


def test_a_replacement_brings_what_it_needs() -> None:
    offers = (offer("a", "2", Depends="b, new | other, script"), offer("b", "2"),
              offer("new", "5", Depends="c, virtual"), offer("last", "6", Provides="virtual"),
              offer("script", "1"))  # fmt: skip
    found = renew(*offers, locked=ABC, gone="a", without=frozenset(["script"]))
    assert found == ABC | {"a": "2", "new": "5", "last": "6"}


def test_a_replacement_gets_the_version_that_it_needs() -> None:
    offers = (offer("a", "2", Pre_Depends="b (>= 1.5), c:any (>= 0.5)"),
              offer("b", "2", Depends="c (= 3)"), offer("c", "3"))  # fmt: skip
    assert renew(*offers, locked=ABC, gone="a") == {"a": "2", "b": "2", "c": "3"}


def test_packages_of_one_source_move_together() -> None:
    offers = (offer("a", "2", Source="x (2)"), offer("b", "2", Source="x"), offer("c", "2"))
    assert renew(*offers, locked=ABC, gone="a") == {"a": "2", "b": "2", "c": "1"}


def test_all_that_nobody_offers_is_said() -> None:
    with pytest.raises(MissingError, match=r"a 1: nothing newer is offered\nb 1: nothing newer"):
        renew(offer("c", "2"), locked=ABC, gone="a b c")
    with pytest.raises(MissingError, match=r"a 2 needs new \| other, which is not offered"):
        renew(offer("a", "2", Depends="new | other"), locked=ABC, gone="a")


def test_all_versions_are_offered_the_newest_first() -> None:
    offers = (offer("a", version) for version in ("1.9", "1.10", "1.10~rc1", "1.10"))
    index = Index(parse_packages("\n".join(offers), "debian"))
    assert [package.version for package in index.offered("a")] == ["1.10", "1.10~rc1", "1.9"]
    assert index.offered("b") == ()
