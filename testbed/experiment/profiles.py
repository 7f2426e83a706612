"""Profiles of links by name: a link's values in a TOML file, with whose they are and their source.

``link = "wpt-3gfast"`` in an experiment file, ``[link] profile``, ``[sweep] link`` or ``--link``
take one from ``profiles/`` of the work tree, or from a folder ``profiles`` beside the file.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.label import knob_text
from testbed.experiment.toml_lines import find_lines, locate, parse_toml
from testbed.experiment.validation import describe, validate
from testbed.kinds.experiment_file import toml_text, value_at
from testbed.model import LinkSpec
from testbed.model.knob import build

KeyPath = tuple[str, ...]
Where = Callable[[KeyPath], str]
LARGEST_FILE = 1 << 16
KEY = ("link", "profile")
AXIS = ("sweep", "profile")
_TYPES: dict[str, type] = {
    **dict.fromkeys(("whose", "source", "about"), str), "date": datetime.date, "verified": bool,
}  # fmt: skip
_ALLOWED = {str: "a text", datetime.date: "a date such as 2025-07-14", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Profile:
    """A link by name: ``values`` by knob, whose they are, where and when they are stated.

    ``verified`` is whether the source was read for this file; else it is what others say of it.
    """

    name: str
    values: dict[str, Any]
    whose: str = ""
    source: str = ""
    date: datetime.date | None = None
    about: str = ""
    verified: bool = True

    @property
    def link(self) -> LinkSpec:
        """The link, with defaults for what the profile does not state."""
        link: LinkSpec = build(LinkSpec, self.values | {"profile": self.name})
        return link


def list_profiles(beside: Path | None = None) -> dict[str, Path]:
    """Return the files of all profiles by name; those in ``profiles`` of ``beside`` come first."""
    folders = [places.PROFILES, *([beside / places.PROFILES.name] if beside else [])]
    files = [file for folder in folders for file in sorted(folder.glob("*.toml"))]
    return {file.stem: file for file in files}


def describe_unknown(name: str, names: Sequence[str]) -> str:
    """Return a sentence on a ``name`` that no profile has, with those that there are."""
    near = did_you_mean(name, names)
    return f"no profile is named {name!r}{near}; there are: {', '.join(sorted(names))}"


def read_profile(path: Path) -> Profile:
    """Return the profile in ``path``.

    Raises:
        ConfigurationError: with all that is wrong with the file.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError([f"cannot read the profile {path}: {reason}"]) from None
    if len(text) > LARGEST_FILE:
        raise ConfigurationError([f"{path}: no profile has more than {LARGEST_FILE} characters"])
    try:
        document, lines = parse_toml(text), find_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError([f"{path}: not TOML: {error}"]) from None

    def where(key: KeyPath) -> str:
        return f"{path}:{locate(lines, key) or 1}"

    problems = list(_find_problems(document, where))
    about = {key: value for key, value in document.items() if key != "link"}
    plain = {"link": document.get("link", {})}
    values, errors = validate(plain, {})
    problems += describe(errors, plain, where)
    if problems:
        raise ConfigurationError(problems)
    return Profile(path.stem, values["link"], **about)


def _find_problems(document: Mapping[str, Any], where: Where) -> Iterator[str]:
    for key, value in document.items():
        if key == "link":
            continue
        if key not in _TYPES:
            near = did_you_mean(key, [*_TYPES, "link"])
            yield (
                f"{where((key,))}: {key}: a profile has no such key{near}; allowed: "
                f"{', '.join(_TYPES)}, and the knobs of [link]"
            )
        elif type(value) is not _TYPES[key]:
            yield f"{where((key,))}: {key}: {toml_text(value)} is not {_ALLOWED[_TYPES[key]]}"
    table = document.get("link")
    if table is None or table == {}:
        yield f"{where(('link',))}: link: a profile states values of the link, in a table [link]"
    elif isinstance(table, dict) and "profile" in table:
        yield f"{where(KEY)}: link.profile: a profile is made of numbers, not of another; copy them"


def hint_of_table(text: str) -> str:
    """Return what to write where a ``text`` that is no TOML has both a name and a table."""
    both = re.search(r"^link *= *[\"']", text, re.MULTILINE) and re.search(
        r"^(\[link\]|link\.)", text, re.MULTILINE
    )
    return '; beside other knobs of the link its profile is [link] profile = "NAME"' * bool(both)


def write_out(document: dict[str, Any], lines: dict[KeyPath, int]) -> None:
    """Write ``link = NAME`` and ``[sweep] link`` of a file as the knob that they are short for."""
    if isinstance(document.get("link"), str):
        document["link"] = {"profile": document["link"]}
    sweep = document.get("sweep")
    if isinstance(sweep, dict) and "link" in sweep and "profile" not in sweep:
        document["sweep"] = {("profile" if k == "link" else k): v for k, v in sweep.items()}
        lines[AXIS] = lines.get(("sweep", "link"), 0)


def read_named(
    document: dict[str, Any], origins: Mapping[KeyPath, str], where: Where, beside: Path
) -> tuple[dict[str, Profile], list[str]]:
    """Return the profiles that a document names, by name, and what is wrong with them.

    Of a profile from the command line, which ``origins`` has, the values take the place of those
    in the file, as every option does; of one in the file they must agree with them.
    """
    key = AXIS if value_at(document, AXIS) is not None else KEY
    named = value_at(document, key)
    names = [name for name in (named if isinstance(named, list) else [named]) if name]
    there = list_profiles(beside) if names else {}
    profiles: dict[str, Profile] = {}
    problems = []
    for name in names:
        if not isinstance(name, str):  # which validation says
            continue
        if name not in there:
            problems.append(f"{where(key)}: {'.'.join(key)}: {describe_unknown(name, [*there])}")
            continue
        try:
            profiles[name] = read_profile(there[name])
        except ConfigurationError as error:
            problems += error.problems
    if key in origins:
        _leave_out_stated(document, origins, profiles)
    return profiles, problems


def _leave_out_stated(
    document: dict[str, Any], origins: Mapping[KeyPath, str], profiles: Mapping[str, Profile]
) -> None:
    for name in {name for profile in profiles.values() for name in profile.values}:
        for table in ("link", "sweep"):
            inner = document.get(table)
            if isinstance(inner, dict) and (table, name) not in origins:
                inner.pop(name, None)
    if document.get("sweep") == {}:
        del document["sweep"]


def find_contradictions(
    values: Mapping[str, Any], profiles: Mapping[str, Profile], where: Where
) -> Iterator[str]:
    """Yield a sentence for each value of the link that is another in a profile beside it."""
    at = where(AXIS if value_at(values, AXIS) is not None else KEY)
    for name in dict.fromkeys(name for each in profiles.values() for name in each.values):
        for key in (("link", name), ("sweep", name)):
            value = value_at(values, key)
            wrong = [p for p in profiles.values() if value != p.values.get(name, value)]
            if value is not None and wrong:
                yield (
                    f"{where(key)}: {'.'.join(key)}: {knob_text(value)}, but the profile "
                    f"{wrong[0].name} ({at}) states {knob_text(wrong[0].values[name])}; leave one "
                    "of the two out, or write the profile's values into [link] without its name "
                    f"(./run.sh links show {wrong[0].name})"
                )
