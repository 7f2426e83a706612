"""Index of Debian's archives: which packages are offered, and what they need (deb822(5)).

Dependencies are resolved without versions: the suites of one release agree with themselves.  Of
alternatives the first that is wanted anyway is taken, else the first that is offered.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from testbed.base.errors import MissingError
from testbed.root.lock import LockedPackage

ARCHITECTURES = ("amd64", "all")
_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Offer:
    """A package that an archive offers.

    Attributes:
        package: what a lock says of it.
        needs: alternatives of each of its dependencies, as names.
        provides: names that it stands for beside its own.
    """

    package: LockedPackage
    needs: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]


def parse_packages(text: str, archive: str) -> Iterator[Offer]:
    """Yield what a ``Packages`` file of ``archive`` offers for x86-64."""
    for paragraph in text.split("\n\n"):
        fields = _read_fields(paragraph)
        if fields.get("Architecture") not in ARCHITECTURES:
            continue
        package = LockedPackage(
            name=fields["Package"],
            version=fields["Version"],
            archive=archive,
            path=fields["Filename"],
            size=int(fields["Size"]),
            sha256=fields["SHA256"],
        )
        depends = (*_relations(fields.get("Pre-Depends")), *_relations(fields.get("Depends")))
        provides = tuple(names[0] for names in _relations(fields.get("Provides")))
        yield Offer(package, depends, provides)


def _read_fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in paragraph.splitlines():
        if line.startswith((" ", "\t")):
            if name:
                fields[name] += " " + line.strip()
            continue
        name, _, value = line.partition(":")
        fields[name] = value.strip()
    return fields


def _relations(field: str | None) -> Iterator[tuple[str, ...]]:
    for relation in (field or "").split(","):
        if relation.strip():
            yield tuple(re.split(r"[\s(:\[]", word.strip())[0] for word in relation.split("|"))


class Index:
    """What several archives offer together: of each package the newest version."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._offers: dict[str, Offer] = {}
        for offer in offers:
            known = self._offers.get(offer.package.name)
            if known is None or is_newer(offer.package.version, known.package.version):
                self._offers[offer.package.name] = offer
        self._providers: dict[str, list[str]] = {}
        for name, offer in sorted(self._offers.items()):
            for provided in offer.provides:
                self._providers.setdefault(provided, []).append(name)

    def newest(self, name: str) -> LockedPackage | None:
        """Return the newest version of a package; ``None``: it is not offered."""
        offer = self._offers.get(name)
        return offer.package if offer else None

    def closure(
        self, wanted: Sequence[str], without: frozenset[str] = frozenset()
    ) -> tuple[LockedPackage, ...]:
        """Return the packages ``wanted`` and all that they need, by name, ``without`` some.

        Raises:
            MissingError: some are not offered; all of them.
        """
        chosen: dict[str, LockedPackage] = {}
        problems: list[str] = []
        waiting: deque[tuple[str, tuple[str, ...]]] = deque(
            (f"the root wants {name}", (name,)) for name in wanted
        )
        direct = set(wanted)
        while waiting:
            reason, alternatives = waiting.popleft()
            if not direct.intersection(alternatives) and without.intersection(alternatives):
                continue
            name = self._choose(alternatives, chosen.keys() | direct)
            if name is None:
                problems.append(f"{reason}, which is not offered")
            elif name not in chosen:
                offer = self._offers[name]
                chosen[name] = offer.package
                waiting.extend((f"{name} needs {' | '.join(each)}", each) for each in offer.needs)
        if problems:
            raise MissingError("\n".join(problems))
        return tuple(chosen[name] for name in sorted(chosen))

    def _choose(self, alternatives: Sequence[str], known: Iterable[str]) -> str | None:
        candidates = [
            candidate
            for name in alternatives
            for candidate in ((name,) if name in self._offers else self._providers.get(name, ()))
        ]
        there = set(known)
        return next((c for c in candidates if c in there), candidates[0] if candidates else None)


def is_newer(version: str, other: str) -> bool:
    """Return whether ``version`` is newer than ``other`` (deb-version(7))."""
    for part, other_part in zip(_parts(version), _parts(other), strict=True):
        pieces = zip_longest(_NUMBERS.split(part), _NUMBERS.split(other_part), fillvalue="")
        for place, (piece, other_piece) in enumerate(pieces):
            rank = _rank_number if place % 2 else _rank_letters
            if rank(piece) != rank(other_piece):
                return rank(piece) > rank(other_piece)
    return False


def _parts(version: str) -> tuple[str, str, str]:
    """Return epoch, upstream version and revision; what is not there counts as 0."""
    epoch, _, rest = version.partition(":") if ":" in version else ("0", "", version)
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "0")
    return epoch, upstream, revision


def _rank_number(piece: str) -> list[tuple[int, str]]:
    return [(int(piece or "0"), "")]


def _rank_letters(piece: str) -> list[tuple[int, str]]:
    """``~`` comes before the end, letters before signs."""
    return [*((-1 if c == "~" else 1 if c.isalpha() else 2, c) for c in piece), (0, "")]
