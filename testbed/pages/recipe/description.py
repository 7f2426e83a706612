"""What a recipe says: the ``[recipe]`` table of a ``page.toml``, checked as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from testbed.base.errors import ConfigurationError
from testbed.experiment.toml_lines import find_lines, locate
from testbed.model import canonical
from testbed.pages.facts import FACTS_NAME, PageFacts, read_facts
from testbed.pages.recipe.schema import Edit, HostRule, Like, Table, sentence
from testbed.pages.recording.exchange import HttpProtocol

Protocol = Literal["http", "h2"]
_Shape = TypeVar("_Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A page that is made from a package.

    Attributes:
        name: the page's folder.
        checksum: ``sha512-<base64>`` as npm gives it, or ``sha256-<hex>`` of a Debian package.
        suite: of Debian; empty for npm.
        when_gone: what to do when the pinned version is no longer to be had.
        root: the folder of the package that is the site; paths are below it.
        index: the document that is loaded.
        main: the host of the index, and of all that no rule in ``hosts`` matches.
        also: files that only scripts ask for; they are served by the main host.
        edits: texts of the package that are replaced, each found exactly once.
        protocol: plain HTTP/1.1, or HTTP/2 over TLS.
    """

    name: str
    title: str
    recorded: date
    licence: str
    registry: Literal["npm", "debian"]
    package: str
    version: str
    checksum: str
    suite: str
    when_gone: Literal["refuse", "newest"]
    root: str
    index: str
    main: str
    hosts: tuple[HostRule, ...]
    also: tuple[str, ...]
    edits: tuple[Edit, ...]
    deviations: tuple[str, ...]
    protocol: Protocol

    @property
    def scheme(self) -> str:
        """Of every URL of the page."""
        return "https" if self.protocol == "h2" else "http"

    @property
    def http(self) -> HttpProtocol:
        """What the page's hosts speak."""
        return "h2" if self.protocol == "h2" else "http/1.1"

    @property
    def digest(self) -> str:
        """SHA-256 hex of all that the recipe says."""
        values = asdict(self) | {"recorded": self.recorded.isoformat()}
        rules = [rule.model_dump() for rule in self.hosts]
        edits = [edit.model_dump() for edit in self.edits]
        text = canonical(values | {"hosts": rules, "edits": edits})
        return hashlib.sha256(text.encode()).hexdigest()


def read_recipe(folder: Path) -> Recipe:
    """Read the recipe of the page in ``folder``.

    Raises:
        ConfigurationError: every problem, with file, line and key.
    """
    path = folder / FACTS_NAME
    facts = read_facts(path)
    table = dict(facts.recipe or {})
    problems: list[str] = []
    if "like" in table:
        own = _validated(path, Like, table, problems)
        table = _table_of(folder.parent / own.like, path, problems) if own else {}
        if own:
            table |= {"protocol": own.protocol}
    valid = None if problems else _validated(path, Table, table, problems)
    if valid is None:
        raise ConfigurationError(problems)
    recipe = _recipe(folder.name, facts, valid)
    expected = f"{recipe.scheme}://{recipe.main}/{recipe.index}"
    if facts.url != expected:
        raise ConfigurationError(
            [f"{path}: url is {facts.url!r}, but the recipe makes {expected!r}; correct one"]
        )
    return recipe


def _table_of(base: Path, path: Path, problems: list[str]) -> dict[str, Any]:
    """The ``[recipe]`` of the page that another one is like."""
    if not (base / FACTS_NAME).is_file():
        problems.append(f"{path}: recipe.like: there is no page {base.name!r} beside this one")
        return {}
    table = read_facts(base / FACTS_NAME).recipe
    if table is None or "like" in table:
        problems.append(f"{path}: recipe.like: the page {base.name!r} has no whole recipe itself")
        return {}
    return dict(table)


def _validated(
    path: Path, shape: type[_Shape], table: Mapping[str, Any], problems: list[str]
) -> _Shape | None:
    try:
        return shape.model_validate(dict(table))
    except ValidationError as error:
        lines = find_lines(path.read_text(encoding="utf-8"))
        for wrong in error.errors(include_url=False):
            line = locate(lines, ("recipe", *(str(part) for part in wrong["loc"])))
            problems.append(f"{path}:{line}: {sentence(shape, wrong)}")
        return None


def _recipe(name: str, facts: PageFacts, table: Table) -> Recipe:
    return Recipe(
        name=name,
        title=facts.title,
        recorded=facts.recorded,
        licence=facts.licence,
        registry=table.registry,
        package=table.package,
        version=table.version,
        checksum=table.integrity or f"sha256-{table.sha256}",
        suite=table.suite or "",
        when_gone=table.when_gone,
        root=table.root,
        index=table.index,
        main=table.main,
        hosts=table.hosts,
        also=table.also,
        edits=table.edits,
        deviations=facts.deviations,
        protocol=table.protocol,
    )
