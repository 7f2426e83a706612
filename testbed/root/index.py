"""Index of Debian's archives: which packages are offered, and what they need (deb822(5)).

A closure is resolved without versions: the suites of one release agree with themselves.  Of
alternatives the first that is wanted anyway is taken, else the first that is offered.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.base.errors import MissingError
from testbed.root.lock import LockedPackage

ARCHITECTURES = ("amd64", "all")
_NUMBERS = re.compile(r"(\d+)")
_LEAST = re.compile(r"([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9]+)?\s*\((?:>=|>>|=)\s*([^)\s]+)")


@dataclass(frozen=True, slots=True)
class Offer:
    """A package that an archive offers.

    Attributes:
        package: what a lock says of it.
        needs: alternatives of each of its dependencies, as names.
        provides: names that it stands for beside its own.
        source: name of the source that it is built from.
        least: the version that it needs at least of a package, by name.
    """

    package: LockedPackage
    needs: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]
    source: str
    least: Mapping[str, str]


def parse_packages(text: str, archive: str) -> Iterator[Offer]:
    """Yield what a ``Packages`` file of ``archive`` offers for x86-64."""
    for paragraph in text.split("\n\n"):
        fields = _read_fields(paragraph)
        if fields.get("Architecture") not in ARCHITECTURES:
            continue
        package = LockedPackage(name=fields["Package"], version=fields["Version"], archive=archive,
                                path=fields["Filename"], size=int(fields["Size"]),
                                sha256=fields["SHA256"])  # fmt: skip
        depends = f"{fields.get('Pre-Depends', '')},{fields.get('Depends', '')}"
        provides = tuple(names[0] for names in _relations(fields.get("Provides", "")))
        source = fields.get("Source", package.name).partition(" ")[0]
        least = dict(_LEAST.findall(depends))
        yield Offer(package, tuple(_relations(depends)), provides, source, least)


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


def _relations(field: str) -> Iterator[tuple[str, ...]]:
    for relation in field.split(","):
        if relation.strip():
            yield tuple(re.split(r"[\s(:\[]", word.strip())[0] for word in relation.split("|"))


class Index:
    """What several archives offer together: of each package the newest version counts."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._all: dict[str, list[Offer]] = {}
        for offer in offers:
            self._all.setdefault(offer.package.name, []).append(offer)
        for several in self._all.values():
            several.sort(key=lambda offer: _version_key(offer.package.version), reverse=True)
        self._offers = {name: several[0] for name, several in self._all.items()}
        self._providers: dict[str, list[str]] = {}
        for name, offer in sorted(self._offers.items()):
            for provided in offer.provides:
                self._providers.setdefault(provided, []).append(name)

    def offered(self, name: str) -> tuple[LockedPackage, ...]:
        """Return what is offered of a package, the newest version first."""
        packages = (offer.package for offer in self._all.get(name, ()))
        return tuple({package.version: package for package in packages}.values())

    def renew(
        self, locked: Sequence[LockedPackage], gone: Collection[LockedPackage],
        without: frozenset[str] = frozenset(),
    ) -> tuple[LockedPackage, ...]:  # fmt: skip
        """Return ``locked`` with the newest in place of those that are ``gone``, by name.

        What these need comes too, ``without`` some.  The others stay as they are locked, but where
        a newer one is needed, or where they are built from the same source as one that is replaced:
        packages of one source need each other in one version.

        Raises:
            MissingError: some are not offered, or no newer; all of them.
        """
        there = {package.name: package for package in locked}
        problems: list[str] = []
        waiting = deque(sorted(package.name for package in gone))
        moved: set[str] = set()
        while waiting:
            name = waiting.popleft()
            if name in moved:
                continue
            moved.add(name)
            offer = self._offers.get(name)
            if offer is None or (offer.package in gone):
                problems.append(f"{there[name].describe()}: nothing newer is offered")
                continue
            there[name] = offer.package
            waiting.extend(self._of_source(offer.source, there))
            waiting.extend(self._unmet(offer, there, without))
        if problems:
            raise MissingError("\n".join(problems))
        return tuple(there[name] for name in sorted(there))

    def _of_source(self, source: str, there: Mapping[str, LockedPackage]) -> Iterator[str]:
        """Yield which packages of ``source`` are there in another version than is offered."""
        for name, package in there.items():
            offer = self._offers.get(name)
            if offer and offer.source == source and offer.package != package:
                yield name

    def _unmet(
        self, offer: Offer, there: Mapping[str, LockedPackage], without: frozenset[str]
    ) -> Iterator[str]:
        """Yield which packages ``offer`` needs that are not there, or not new enough."""
        for alternatives in offer.needs:
            kept = next((name for name in alternatives if name in there), None)
            name = kept or self._choose(alternatives, there)
            if name not in there and without.intersection(alternatives):
                continue
            if name is None:
                raise MissingError(
                    f"{offer.package.describe()} needs {' | '.join(alternatives)}, which is not "
                    "offered"
                )
            least = offer.least.get(name)
            if name not in there or (least and is_newer(least, there[name].version)):
                yield name

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
    return _version_key(version) > _version_key(other)


def _version_key(version: str) -> list[list[list[tuple[int, str]]]]:
    """Return what sorts versions: of epoch, upstream version and revision letters and numbers.

    What is not there counts as 0.
    """
    epoch, _, rest = version.partition(":") if ":" in version else ("0", "", version)
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "0")
    return [
        [[(int(piece), "")] if place % 2 else _rank_letters(piece)
         for place, piece in enumerate(_NUMBERS.split(part))]
        for part in (epoch, upstream, revision)
    ]  # fmt: skip


def _rank_letters(piece: str) -> list[tuple[int, str]]:
    """``~`` comes before the end, letters before signs."""
    return [*((-1 if c == "~" else 1 if c.isalpha() else 2, c) for c in piece), (0, "")]
