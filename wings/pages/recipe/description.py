"""A recipe's description: the ``[recipe]`` table of a ``page.toml``, checked as a whole."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.toml_lines import find_lines, locate
from testbed.pages.catalogue import FACTS_NAME, read_facts
from wings.pages.exchange import HttpProtocol

_WRONG = "wrong"
_Shape = TypeVar("_Shape", bound=BaseModel)
_Host = Annotated[str, Field(
    pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+test$",
    description="a host name in lower case that ends in .test, as RFC 6761 reserves it",
)]  # fmt: skip


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError(_WRONG, "{problem}", {"problem": text})


def _below(path: str) -> str:
    if path.startswith("/") or posixpath.normpath(path) != path or path.startswith(".."):
        raise _problem(f"{path!r} is not a plain relative path; write it without '..' and '//'")
    return path


_Path = Annotated[str, Field(min_length=1), AfterValidator(_below)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HostRule(_Model):
    """Files whose path matches the glob are served by this host."""

    match: Annotated[str, Field(min_length=1, description="a glob, as 'images/*'")]
    host: _Host


class Edit(_Model):
    """One text in one file that is replaced by another."""

    file: _Path
    old: Annotated[str, Field(min_length=1, description="the text to be replaced")]
    new: Annotated[str, Field(description="the text that replaces it")]


_PACKAGE = r"^(@[a-z0-9._-]+/)?[a-z0-9][a-z0-9.+_-]*$"
_VERSION = r"^[A-Za-z0-9][A-Za-z0-9.+:~_-]*$"
_INTEGRITY = r"^sha512-[A-Za-z0-9+/]{86}==$"


class FurtherPackage(_Model):
    """A further package of npm, whose files below ``root`` are the site's below ``at``."""

    package: Annotated[str, Field(pattern=_PACKAGE, description="its name")]
    version: Annotated[str, Field(pattern=_VERSION, description="one exact version")]
    integrity: Annotated[str, Field(
        pattern=_INTEGRITY,
        description="the 'sha512-...' that `npm view PACKAGE@VERSION dist.integrity` says",
    )]  # fmt: skip
    root: _Path
    at: _Path


class Like(_Model):
    """A recipe that differs from another page's by its protocol only."""

    like: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
                               description="the name of another page with a recipe")]  # fmt: skip
    protocol: Annotated[Literal["http", "h2"], Field(description="'http' or 'h2'")]


class RecipeTable(_Model):
    """A whole recipe."""

    registry: Annotated[Literal["npm", "debian"], Field(description="'npm' or 'debian'")]
    package: Annotated[str, Field(pattern=_PACKAGE, description="its name")]
    version: Annotated[str, Field(pattern=_VERSION, description="one exact version")]
    integrity: Annotated[str | None, Field(
        pattern=_INTEGRITY,
        description="the 'sha512-...' that `npm view PACKAGE@VERSION dist.integrity` says",
    )] = None  # fmt: skip
    sha256: Annotated[str | None, Field(
        pattern=r"^[0-9a-f]{64}$",
        description="the SHA256 that `apt-cache show PACKAGE=VERSION` says",
    )] = None  # fmt: skip
    suite: Annotated[
        str | None, Field(pattern=r"^[a-z][a-z-]*$", description="a suite of Debian, as 'bookworm'")
    ] = None
    when_gone: Annotated[Literal["refuse", "newest"], Field(description="'refuse' or 'newest'")] = (
        "refuse"
    )
    root: _Path
    index: _Path
    main: _Host
    hosts: Annotated[tuple[HostRule, ...], Field(strict=False)] = ()
    also: Annotated[tuple[_Path, ...], Field(strict=False)] = ()
    parts: Annotated[tuple[FurtherPackage, ...], Field(strict=False)] = ()
    own: Annotated[tuple[_Path, ...], Field(strict=False)] = ()
    edits: Annotated[tuple[Edit, ...], Field(strict=False)] = ()
    protocol: Annotated[Literal["http", "h2"], Field(description="'http' or 'h2'")]

    @model_validator(mode="after")
    def _fits_the_registry(self) -> Self:
        debian = self.registry == "debian"
        needed = ("sha256", "suite") if debian else ("integrity",)
        other = ("integrity",) if debian else ("sha256", "suite")
        problems = [f"{key} is missing; {_described(RecipeTable, key)}" for key in needed
                    if getattr(self, key) is None]  # fmt: skip
        problems += [f"{key} is not for {self.registry}; remove it" for key in other
                     if getattr(self, key) is not None]  # fmt: skip
        if not debian and self.when_gone == "newest":
            problems.append("when_gone: npm keeps every version; remove it")
        if problems:
            raise _problem("; ".join(problems))
        return self


class Recipe(RecipeTable):
    """A page that is made from a package: its table, and the facts of its ``page.toml``.

    ``root`` is the folder of the package that is the site, with ``index`` the document that is
    loaded; ``main`` is the host of all that no rule in ``hosts`` matches.  ``also`` are files that
    only scripts ask for; the main host serves them.  ``parts`` are further packages, such as those
    of third parties, and ``own`` files that stand beside the ``page.toml``: ``own_files`` has their
    texts.  ``edits`` are texts that are replaced, each found exactly once.
    """

    name: str
    title: str
    recorded: date
    licence: str
    deviations: tuple[str, ...]
    own_files: dict[str, str]

    def of_part(self, part: FurtherPackage) -> Recipe:
        """Return the recipe with ``part`` for its package."""
        return self.model_copy(update={**dict(part), "registry": "npm", "when_gone": "refuse"})

    @property
    def checksum(self) -> str:
        """``sha512-<base64>`` as npm gives it, or ``sha256-<hex>`` of a Debian package."""
        return self.integrity or f"sha256-{self.sha256}"

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
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def read_recipe(folder: Path) -> Recipe:
    """Read the recipe of the page in ``folder``.

    Raises:
        ConfigurationError: every problem, with file, line and key.
    """
    path = base = folder / FACTS_NAME
    facts = read_facts(path)
    table = dict(facts.recipe or {})
    problems: list[str] = []
    if "like" in table:
        like = _validated(path, Like, table, problems)
        if like:
            base = folder.parent / like.like / FACTS_NAME
            table = _table_of(base.parent, path, problems) | {"protocol": like.protocol}
    valid = None if problems else _validated(path, RecipeTable, table, problems)
    own_files = {} if valid is None else _read_own(base, valid.own, problems)
    if valid is None or problems:
        raise ConfigurationError(problems)
    recipe = Recipe.model_construct(**dict(valid), name=folder.name, title=facts.title,
                                    recorded=facts.recorded, licence=facts.licence,
                                    deviations=facts.deviations, own_files=own_files)  # fmt: skip
    expected = f"{recipe.scheme}://{recipe.main}/{recipe.index}"
    if facts.url != expected:
        raise ConfigurationError(
            [f"{path}: url is {facts.url!r}, but the recipe makes {expected!r}; correct one"]
        )
    return recipe


def _read_own(facts: Path, names: tuple[str, ...], problems: list[str]) -> dict[str, str]:
    """Return the texts of files beside the ``page.toml`` that is ``facts``, by their names."""
    texts = {}
    for name in names:
        try:
            texts[name] = (facts.parent / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{facts}: recipe.own: {name} cannot be read as a text: {error}")
    return texts


def _table_of(base: Path, path: Path, problems: list[str]) -> dict[str, Any]:
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
            problems.append(f"{path}:{line}: {_sentence(shape, wrong)}")
        return None


def _sentence(shape: type[BaseModel], error: ErrorDetails) -> str:
    loc = error["loc"]
    key = "recipe" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    if error["type"] == "extra_forbidden":
        model = _model_at(shape, loc[:-1])
        name, keys = str(loc[-1]), tuple(model.model_fields)
        return f"{key}: no such key{did_you_mean(name, keys)}; allowed: {', '.join(keys)}"
    if error["type"] == _WRONG:
        return f"{key}: {error['msg']}"
    allowed = _described(_model_at(shape, loc[:-1]), str(loc[-1])) if loc else ""
    if error["type"] == "missing":
        return f"{key}: missing{f'; {allowed}' if allowed else ''}"
    return f"{key}: {error['input']!r} is not {allowed or 'allowed: ' + error['msg'].lower()}"


def _described(model: type[BaseModel], key: str) -> str:
    field = model.model_fields.get(key)
    return (field.description or "") if field else ""


def _model_at(shape: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel]:
    model: type[BaseModel] = shape
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        inner: Any = next(iter(get_args(field.annotation)), None)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return model
