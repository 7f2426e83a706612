"""Sentences about what a recording lacks: one for each kind of thing, with its URLs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

MOST_NAMED = 20


class Notes:
    """Collects URLs by what happened to them.

    Queries are left out: a note is for people, and a query may hold a secret.
    """

    def __init__(self) -> None:
        self._urls: dict[str, list[str]] = {}
        self._plain: list[str] = []

    def add(self, what: str, url: str) -> None:
        """``what`` is a clause without its subject, such as "no response (timed out)"."""
        self._urls.setdefault(what, []).append(_bare(url))

    def add_all(self, what: str, urls: Iterable[str]) -> None:
        """The same for several."""
        for url in urls:
            self.add(what, url)

    def say(self, sentence: str) -> None:
        """Add a sentence that is about no URL."""
        self._plain.append(sentence)

    def sentences(self) -> tuple[str, ...]:
        """One sentence for each kind, in the order of first mention."""
        kinds = (
            f"{what[0].upper()}{what[1:]}: {_named(Counter(urls))}."
            for what, urls in self._urls.items()
        )
        return (*self._plain, *kinds)


def _named(urls: Mapping[str, int]) -> str:
    names = [f"{url} ({count} times)" if count > 1 else url for url, count in urls.items()]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _bare(url: str) -> str:
    path, mark, _ = url.partition("?")
    return f"{path}?..." if mark else path
