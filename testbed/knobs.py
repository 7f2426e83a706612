"""Every knob that an experiment may turn: where it stands in the TOML and what it may be.

The types carry the limits, so that one declaration validates a fixed value and a swept one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from testbed.model import Cookies, Dns, Protocol, Randomness, ThinkTime, TlsVersion
from testbed.stopping import FIRST_LOOK
from testbed.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob: its table in the file (``()`` is the top), its type, and its values in words.

    ``text`` says that values are text; ``names`` are all of them when there are few.
    """

    table: tuple[str, ...]
    kind: Any
    allowed: str
    text: bool = False
    names: tuple[str, ...] = ()


def _whole(table: str, low: int, high: int) -> Knob:
    kind = Annotated[int, Field(ge=low, le=high)]
    return Knob((table,) if table else (), kind, f"a whole number from {low} to {high}")


def _choice(literal: Any, *table: str) -> Knob:
    names: tuple[str, ...] = get_args(literal)
    words = " or ".join(f'"{name}"' for name in names)
    return Knob(table, literal, words, text=True, names=names)


def _listed(what: str, *table: str) -> Knob:
    """A name from the catalogue that validation is given as its context."""

    def check(name: str, info: ValidationInfo) -> str:
        names: Mapping[str, frozenset[str]] = info.context or {}
        valid = names.get(what, frozenset())
        if name in valid:
            return name
        problem = f"no {what} is named {name!r}{did_you_mean(name, valid)}"
        allowed = ", ".join(sorted(valid)) or "none, because there is none here"
        raise PydanticCustomError("not_listed", "{problem}; allowed: {allowed}", {
            "problem": problem, "allowed": allowed,
        })  # fmt: skip

    return Knob(table, Annotated[str, AfterValidator(check)], f"the name of a {what}", text=True)


def unique(values: list[Any]) -> list[Any]:
    """``values``, refused when one of them stands there twice."""
    twice = [value for index, value in enumerate(values) if value in values[:index]]
    if twice:
        problem = f"{twice[0]!r} stands in the list twice"
        raise PydanticCustomError("twice", "{problem}", {"problem": problem})
    return values


def _milliseconds(*table: str) -> Knob:
    kind = Annotated[float, Field(ge=0, le=60_000, allow_inf_nan=False)]
    return Knob(table, kind, "a number of milliseconds from 0 to 60000")


def _percentage(*table: str) -> Knob:
    kind = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
    return Knob(table, kind, "a percentage from 0 to 100")


SWEPT: dict[str, Knob] = {
    "page": _listed("page"),
    "client": _listed("client"),
    "dns": _choice(Dns),
    "think_time": _choice(ThinkTime),
    "protocol": _choice(Protocol),
    "tls_version": _choice(TlsVersion),
    "randomness": _choice(Randomness),
    "allow_misses": Knob((), bool, "true or false"),
    "server_think_ms": _milliseconds(),
    "think_spread_pct": _percentage(),
    "start_spread_ms": _milliseconds(),
    "rtt_ms": Knob(
        ("link",),
        Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)],
        "a number of milliseconds above 0, up to 60000",
    ),
    "down_kbit": _whole("link", 1, 10_000_000),
    "up_kbit": _whole("link", 1, 10_000_000),
    "buffer_bytes": _whole("link", 1, 2**31 - 1),
    "mtu_bytes": _whole("link", 576, 9000),
    "framing_bytes": _whole("link", 0, 256),
    "loss_pct": _percentage("link"),
    "tfo": Knob(("tcp",), bool, "true or false"),
    "cookies": _choice(Cookies, "tcp"),
    "initcwnd_segments": _whole("tcp", 1, 1000),
    "congestion_control": Knob(
        ("tcp",),
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,15}$")],
        'the kernel\'s name of an algorithm, such as "cubic" or "reno"',
        text=True,
    ),
    "requests_per_connection": Knob(
        ("tcp",),
        Annotated[int, Field(ge=1, le=2**31 - 1)] | Literal["unlimited"],
        'a whole number from 1, or "unlimited"',
    ),
}
"""The knobs that make a Condition: fixed in their table, or a list in [sweep]."""

FIXED: dict[str, Knob] = {
    "title": Knob((), Annotated[str, StringConstraints(min_length=1)], "a line of text", text=True),
    "reference": _listed("reference"),
    "repetitions": _whole("", 1, 10_000),
    "seed": _whole("", 0, 2**31 - 1),
    "until_ci_pct": Knob(
        (),
        Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)],
        "a percentage above 0, up to 100",
    ),
    "max_repetitions": _whole("", FIRST_LOOK, 10_000),
    "warmup_blocks": _whole("", 0, 100),
    "timeout_s": Knob(
        (),
        Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)],
        "a number of seconds above 0, up to 86400",
    ),
}
"""The knobs that hold for a whole experiment."""

KERNEL: dict[str, Knob] = {
    "name": _listed("kernel", "kernel"),
    "version": Knob(("kernel",), str, "a version of that kernel, as text", text=True),
    "versions": Knob(
        ("kernel",),
        Annotated[list[str], Field(min_length=2, max_length=2), AfterValidator(unique)],
        "a list of two versions of that kernel, as text",
        text=True,
    ),
}
"""On which kernel the experiment runs; on both of two ``versions``, one after the other."""


def paths() -> dict[tuple[str, ...], Knob]:
    """Every knob by its full path in the file, without [sweep]."""
    named = SWEPT | FIXED | KERNEL
    return {(*knob.table, name): knob for name, knob in named.items()}
