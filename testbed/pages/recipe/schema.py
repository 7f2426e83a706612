"""The shape of a ``[recipe]`` table, as pydantic models: strict, and an unknown key is an error."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from testbed.base.suggest import did_you_mean

_WRONG = "wrong"


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError(_WRONG, "{problem}", {"problem": text})


def _below(path: str) -> str:
    if path.startswith("/") or posixpath.normpath(path) != path or path.startswith(".."):
        raise _problem(f"{path!r} is not a plain relative path; write it without '..' and '//'")
    return path


_Path = Annotated[str, Field(min_length=1), AfterValidator(_below)]
_Host = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+test$",
        description="a host name in lower case that ends in .test, as RFC 6761 reserves it",
    ),
]


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


class Like(_Model):
    """A recipe that differs from another page's by its protocol only."""

    like: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
                               description="the name of another page with a recipe")]  # fmt: skip
    protocol: Annotated[Literal["http", "h2"], Field(description="'http' or 'h2'")]


class Table(_Model):
    """A whole recipe."""

    registry: Annotated[Literal["npm", "debian"], Field(description="'npm' or 'debian'")]
    package: Annotated[
        str, Field(pattern=r"^(@[a-z0-9._-]+/)?[a-z0-9][a-z0-9.+_-]*$", description="its name")
    ]
    version: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+:~_-]*$", description="one exact version")
    ]
    integrity: Annotated[
        str | None,
        Field(pattern=r"^sha512-[A-Za-z0-9+/]{86}==$",
              description="the 'sha512-...' that `npm view PACKAGE@VERSION dist.integrity` says"),
    ] = None  # fmt: skip
    sha256: Annotated[
        str | None,
        Field(pattern=r"^[0-9a-f]{64}$",
              description="the SHA256 that `apt-cache show PACKAGE=VERSION` says"),
    ] = None  # fmt: skip
    suite: Annotated[
        str | None,
        Field(pattern=r"^[a-z][a-z-]*$", description="a suite of Debian, as 'bookworm'"),
    ] = None
    when_gone: Annotated[Literal["refuse", "newest"], Field(description="'refuse' or 'newest'")] = (
        "refuse"
    )
    root: _Path
    index: _Path
    main: _Host
    hosts: Annotated[tuple[HostRule, ...], Field(strict=False)] = ()
    also: Annotated[tuple[_Path, ...], Field(strict=False)] = ()
    edits: Annotated[tuple[Edit, ...], Field(strict=False)] = ()
    protocol: Annotated[Literal["http", "h2"], Field(description="'http' or 'h2'")]

    @model_validator(mode="after")
    def _fits_the_registry(self) -> Self:
        debian = self.registry == "debian"
        needed = ("sha256", "suite") if debian else ("integrity",)
        other = ("integrity",) if debian else ("sha256", "suite")
        problems = [f"{key} is missing; {_described(Table, key)}" for key in needed
                    if getattr(self, key) is None]  # fmt: skip
        problems += [f"{key} is not for {self.registry}; remove it" for key in other
                     if getattr(self, key) is not None]  # fmt: skip
        if not debian and self.when_gone == "newest":
            problems.append("when_gone: npm keeps every version; remove it")
        site = self.main.split(".")[-2:]
        problems += [
            f"hosts: {rule.host} is not below {'.'.join(site)} as main is; a page is one site"
            for rule in self.hosts
            if rule.host.split(".")[-2:] != site
        ]
        if problems:
            raise _problem("; ".join(problems))
        return self


def sentence(shape: type[BaseModel], error: ErrorDetails) -> str:
    """What is wrong and what is allowed, with the key."""
    loc = error["loc"]
    key = "recipe" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    if error["type"] == "extra_forbidden":
        model = _model_at(shape, loc[:-1])
        name, known = str(loc[-1]), tuple(model.model_fields)
        return f"{key}: no such key{did_you_mean(name, known)}; allowed: {', '.join(known)}"
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
    """The model that a place in the document belongs to."""
    model: type[BaseModel] = shape
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        inner: Any = next(iter(get_args(field.annotation)), None)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return model
