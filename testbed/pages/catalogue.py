"""Available pages, one folder each, and the facts in their ``page.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from testbed.archive.posted import read_rules
from testbed.archive.reading import FACTS_NAME as FACTS_NAME  # known here, too
from testbed.archive.reading import HAR_NAME
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.whole_folder import OccupiedError, new_folder
from testbed.model.device import BrowserDevice, read_device

_REQUIRED: dict[str, type] = {"title": str, "url": str, "recorded": date, "source": str,
                              "licence": str, "bodies": str, "deviations": list}  # fmt: skip
_OPTIONAL: dict[str, type] = {"pinned": bool, "made_up": bool, "recipe": dict, "table": dict,
                              "device": dict, "match": list}  # fmt: skip
# What TOML 1.0 does not allow in a basic string, and the two that mean something there.
_ESCAPED = re.compile('[\x00-\x1f\x7f"\\\\]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
TABLE_NAME = "resources.csv"
Kind = Literal["table", "archive", "recipe"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a page; the keys of page.toml, see wings/pages/README.md.

    ``recipe`` is the raw table of a page that is installed from packages, ``table`` that of one
    that has another page's resource table; ``made_up`` says of an imported table that results are
    to name its bodies so; ``device`` is what it was recorded on; ``match`` are the raw tables of
    rules for its requests.
    """

    title: str
    url: str
    recorded: date
    source: str
    licence: str
    bodies: str
    deviations: tuple[str, ...]
    pinned: bool = False
    made_up: bool = False
    recipe: dict[str, Any] | None = None
    table: dict[str, Any] | None = None
    device: BrowserDevice | None = None
    match: tuple[dict[str, Any], ...] = ()


def read_facts(path: Path) -> PageFacts:
    """Read a ``page.toml``.

    Raises:
        ConfigurationError: every problem found, with file and key.
    """
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from None
    kinds = _REQUIRED | _OPTIONAL
    keys = ", ".join(kinds)
    unknown = [key for key in values if key not in kinds]
    problems = [f"{path}: unknown key {key!r}; the keys are {keys}" for key in unknown]
    for key, kind in kinds.items():
        if key not in values:
            if key in _REQUIRED:
                problems.append(f"{path}: key {key!r} is missing")
        elif type(values[key]) is not kind:
            problems.append(f"{path}: {key} is {values[key]!r}, expected a {kind.__name__}")
    deviations = values.get("deviations")
    if isinstance(deviations, list) and not all(isinstance(item, str) for item in deviations):
        problems.append(f"{path}: deviations holds something that is not a text")
    if isinstance(values.get("device"), dict):
        try:
            values["device"] = read_device(values["device"])
        except ValueError as error:
            problems.append(f"{path}: device: {error}")
    try:
        read_rules(values.get("match", []))
    except ValueError as error:
        problems.append(f"{path}: {error}")
    if problems:
        raise ConfigurationError(problems)
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return PageFacts(**(values | lists))


def format_facts(facts: PageFacts) -> str:
    """Return the ``page.toml`` that ``read_facts`` reads back, for a page without a recipe.

    Half a surrogate pair, which TOML cannot hold, becomes U+FFFD.
    """
    lines = [f"title = {_quote(facts.title)}", f"url = {_quote(facts.url)}",
             f"recorded = {facts.recorded.isoformat()}", f"source = {_quote(facts.source)}",
             f"licence = {_quote(facts.licence)}", f"bodies = {_quote(facts.bodies)}"]  # fmt: skip
    if facts.pinned:
        lines.append("pinned = true")
    if facts.made_up:
        lines.append("made_up = true")
    if facts.deviations:
        deviations = "".join(f"    {_quote(text)},\n" for text in facts.deviations)
        lines.append(f"deviations = [\n{deviations}]")
    else:
        lines.append("deviations = []")
    if facts.device is not None:
        lines.append("\n[device]")
        lines += (f"{key} = {_value(value)}" for key, value in facts.device.plain().items())
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _quote(value) if isinstance(value, str) else str(value).lower()


def _quote(text: str) -> str:
    valid_text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return f'"{_ESCAPED.sub(_escape, valid_text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


def list_pages(root: Path) -> tuple[Path, ...]:
    """Return the page folders below ``root``, by name; one that is just being written is none."""
    folders = (path.parent for path in root.glob(f"*/{FACTS_NAME}"))
    return tuple(sorted(folder for folder in folders if not folder.name.startswith(".")))


def find_page(root: Path, name: str) -> Path:
    """Return the folder of the page called ``name``.

    Raises:
        ConfigurationError: there is no such page; the message has the nearest name.
    """
    names = [folder.name for folder in list_pages(root)]
    if name in names:
        return root / name
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"the pages are {', '.join(names) or 'none'}"
    raise ConfigurationError([f"{root}: no page {name!r}; {hint}"])


def name_page(root: Path, name: str, *, replace: bool = False) -> Path:
    """Return the folder for a new page called ``name``, which is not made yet.

    Raises:
        ConfigurationError: it is no name for a folder, or there is such a page and it is not to
            be replaced.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            [f"{name!r} cannot name a page; use letters, digits, '.', '_', '-', 64 at the most, "
             "and begin with a letter or a digit"]
        )  # fmt: skip
    folder = root / name
    if folder.exists() and not replace:
        raise ConfigurationError([_taken(folder)])
    return folder


def _taken(folder: Path) -> str:
    return f"{folder}: there is a page of this name; choose another, or give --replace"


@contextmanager
def new_page(folder: Path, facts: PageFacts, *, replace: bool = False) -> Iterator[Path]:
    """Yield ``new_folder`` for a page that a user named, with its ``page.toml`` in it.

    Raises:
        ConfigurationError: the folder is there, and ``replace`` is not given.
        StorageError: it cannot be written; what was there before is intact.
    """
    try:
        with new_folder(folder, replace=replace) as scratch:
            (scratch / FACTS_NAME).write_text(format_facts(facts), encoding="utf-8")
            yield scratch
    except OccupiedError:
        raise ConfigurationError([_taken(folder)]) from None
    except OSError as error:
        raise StorageError(
            f"cannot write the page {folder}: {error.strerror or error}; what was there before is "
            "intact; free some space or choose another place"
        ) from None


def list_sources(folder: Path) -> tuple[Path, ...]:
    """Return the folders of pages that one is built from: itself, and the one that it is like.

    Raises:
        ConfigurationError: its ``page.toml`` is wrong.
    """
    facts = read_facts(folder / FACTS_NAME)
    base = folder.parent / str((facts.table or facts.recipe or {}).get("like", ""))
    return (folder, base) if (base / FACTS_NAME).is_file() else (folder,)


def read_kind(folder: Path) -> Kind:
    """Return which kind of page ``folder`` holds.

    Raises:
        ConfigurationError: none, more than one, or its ``page.toml`` is wrong.
    """
    facts = read_facts(folder / FACTS_NAME)
    known: tuple[tuple[Kind, str, bool], ...] = (
        ("table", f"a [table] in {FACTS_NAME}", facts.table is not None),
        ("table", TABLE_NAME, (folder / TABLE_NAME).exists()),
        ("archive", HAR_NAME, (folder / HAR_NAME).exists()),
        ("recipe", f"a [recipe] in {FACTS_NAME}", facts.recipe is not None),
    )
    sources = [(kind, words) for kind, words, is_there in known if is_there]
    if len(sources) == 1:
        return sources[0][0]
    contents = " and ".join(words for _, words in sources) or "nothing to build"
    raise ConfigurationError(
        [f"{folder}: has {contents}; a page has exactly one of {TABLE_NAME} (a table), {HAR_NAME} "
         f"(an archive), and a [table] and a [recipe] in {FACTS_NAME}"]
    )  # fmt: skip
