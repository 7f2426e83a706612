"""Settings of TCP in experiment files: tables with the kernel's names for keys, checked and named.

``[tcp.sysctl]`` and ``[tcp.route]`` hold them, each for both ends or, in a table below, for one;
lists of their values are in ``[sweep.sysctl]`` and ``[sweep.route]``.  The kernel alone knows which
sysctls there are; what is refused here no trial could do, or is another knob's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticCustomError

from testbed.base.suggest import did_you_mean
from testbed.kinds import find_kind
from testbed.model.settings import (
    ATTRIBUTES,
    BOUNDS,
    ENDS,
    FAMILIES,
    is_sysctl,
    is_value,
    normal,
    shorten,
    split_end,
)

KeyPath = tuple[str, ...]
Where = Callable[[KeyPath], str]
PREFIXES = ("tcp", "sweep")
"""The tables that families are in: with one value for each name, and with a list of them."""
_DEEPEST = 8
_FAST_OPEN = "tcp.tfo and tcp.cookies"
_MECHANISM = "server.mechanism, of a load on a server"
_ALWAYS = {
    "tcp_fastopen": _FAST_OPEN,
    "tcp_fastopen_key": _FAST_OPEN,
    "tcp_congestion_control": "tcp.congestion_control, or tcp.route.END.congctl for one end",
    "tcp_overload": _MECHANISM,
    "tcp_accept_limit": _MECHANISM,
}
_OF_THE_MACHINE = ("tcp_allowed_congestion_control",)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as a file has it: where, of which family, its name as it is kept, its value."""

    path: KeyPath
    family: str
    name: str
    value: Any

    @property
    def swept(self) -> bool:
        """Whether it is a list of values, one for each condition."""
        return self.path[0] == "sweep"


def find_path(key: KeyPath) -> KeyPath | None:
    """Return the path in [tcp] of the setting that the words of a dotted key name, if they do."""
    words = key[1:] if key[:1] == ("tcp",) else key
    if len(words) < 2 or words[0] not in FAMILIES:
        return None
    return ("tcp", words[0], shorten(".".join(words[1:])))


def read_settings(document: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield every setting of a document, in its order, right or wrong."""
    for prefix in PREFIXES:
        table = document.get(prefix)
        if not isinstance(table, dict):
            continue
        for family, inner in table.items():
            if family in FAMILIES and isinstance(inner, dict):
                yield from _read_table(inner, (prefix, family))


def _read_table(table: Mapping[str, Any], path: KeyPath) -> Iterator[Setting]:
    for key, value in table.items():
        here = (*path, key)
        if isinstance(value, dict) and len(here) < _DEEPEST:
            yield from _read_table(value, here)
        else:
            yield Setting(here, path[1], shorten(".".join(here[2:])), value)


def without_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without the tables of settings, for what validates all others."""
    plain = dict(document)
    for prefix in PREFIXES:
        table = plain.get(prefix)
        if isinstance(table, dict):
            plain[prefix] = {key: value for key, value in table.items() if key not in FAMILIES}
    return plain


def with_settings(
    values: Mapping[str, Any], document: Mapping[str, Any], settings: list[Setting]
) -> dict[str, Any]:
    """Return validated ``values`` with settings that are right.

    ``tcp`` then has a table of names for each family, ``sweep`` an axis ``FAMILY.NAME`` for each
    list, where its family is in the file.
    """
    whole: dict[str, Any] = dict(values)
    for setting in settings:
        if not setting.swept:
            tcp = whole["tcp"] = dict(whole.get("tcp", {}))
            tcp[setting.family] = {
                **tcp.get(setting.family, {}),
                setting.name: normal(setting.value),
            }
    if "sweep" in whole:
        axes: dict[str, list[Any]] = {}
        for axis in document["sweep"]:
            if axis in whole["sweep"]:
                axes[axis] = whole["sweep"][axis]
            for setting in settings:
                if setting.swept and setting.family == axis:
                    axes[f"{axis}.{setting.name}"] = [normal(value) for value in setting.value]
        whole["sweep"] = axes
    return whole


def check_settings(document: Mapping[str, Any], where: Where) -> Iterator[str]:
    """Yield a sentence for each setting of a document that its trials cannot have."""
    for prefix in PREFIXES:
        table = document.get(prefix)
        if not isinstance(table, dict):
            continue
        for family in FAMILIES:
            if family in table and not isinstance(table[family], dict):
                name = f"{prefix}.{family}"
                yield f"{where((prefix, family))}: {name}: not a table; write it as [{name}]"
    yield from _find_problems(list(read_settings(document)), document.get("kind"), where)


def _find_problems(settings: list[Setting], kind: object, where: Where) -> Iterator[str]:
    for setting in settings:
        place = f"{where(setting.path)}: {'.'.join(setting.path)}"
        problem = _name_problem(setting.family, setting.name, kind) or _value_problem(setting)
        if problem is not None:
            yield f"{place}: {problem}"
    yield from _twice(settings, where)


def _twice(settings: list[Setting], where: Where) -> Iterator[str]:
    """Yield a sentence for each setting that an end has from two places."""
    seen: dict[tuple[str, str], dict[str, Setting]] = {}
    for setting in settings:
        end, bare = split_end(setting.name)
        by_end = seen.setdefault((setting.family, bare), {})
        rivals = [end, ""] if end else ["", *ENDS]
        whose = next((rival for rival in rivals if rival in by_end), None)
        if whose is not None:
            other = by_end[whose]
            of_both = "" if end == whose else f"; for two values name {' and '.join(ENDS)}"
            yield (
                f"{where(setting.path)}: {'.'.join(setting.path)}: also in "
                f"{'.'.join(other.path)} ({where(other.path)}); keep one of the two{of_both}"
            )
        by_end.setdefault(end, setting)


def _name_problem(family: str, name: str, kind: object) -> str | None:
    end, bare = split_end(name)
    if family == "route":
        return _attribute_problem(end, bare)
    if not is_sysctl(bare):
        return (
            f"{bare[:64]!r} names no sysctl directly in net.ipv4 or net.core (those of devices, "
            "routes and neighbours are the lab's); write it as tcp_sack, core.somaxconn or "
            "net.ipv4.tcp_sack, after client. or server. for one end"
        )
    if bare in _OF_THE_MACHINE:
        return "it is the whole machine's, which no trial changes; leave it out"
    if bare in _ALWAYS:
        return f"another knob sets it; use {_ALWAYS[bare]}"
    known = find_kind(kind)
    sysctls = known.sysctls.items() if known is not None else ()
    return next(
        (why[bare] for set_end, why in sysctls if end in ("", set_end) and bare in why), None
    )


def _attribute_problem(end: str, bare: str) -> str | None:
    if bare not in ATTRIBUTES:
        near = did_you_mean(bare, ATTRIBUTES)
        return f"routes have no such attribute here{near}; allowed: {', '.join(ATTRIBUTES)}"
    if bare == "initcwnd" and end != "client":
        return (
            "another knob sets the server's; use tcp.initcwnd_segments, and "
            "tcp.route.client.initcwnd for the client's"
        )
    if bare == "congctl" and not end:
        return "another knob sets it at both ends; use tcp.congestion_control"
    return None


def _value_problem(setting: Setting) -> str | None:
    bare = split_end(setting.name)[1]
    if not setting.swept:
        if isinstance(setting.value, list):
            return f"a list is swept: write it as [sweep] {setting.family}.{setting.name} = [...]"
        values = [setting.value]
    elif isinstance(setting.value, list) and setting.value:
        values = setting.value
    else:
        return f"this is not a list of one or more values; each: {_allowed(setting.family, bare)}"
    for value in values:
        if not is_value(setting.family, bare, value):
            return f"{_shown(value)} is not {_allowed(setting.family, bare)}"
    normalized = [normal(value) for value in values]
    twice = [value for index, value in enumerate(normalized) if value in normalized[:index]]
    return f"{twice[0]!r} is in the list twice" if twice else None


def _shown(value: object) -> str:
    """Return a value in a message; one that is too long by its type."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or depth
        text = ""
    return text if 0 < len(text) <= 60 else f"this {type(value).__name__}"


def _allowed(family: str, bare: str) -> str:
    if family == "sysctl":
        return "a whole number, or a text of printable words as the kernel shows it"
    if bare in BOUNDS:
        return "a whole number from {} to {}".format(*BOUNDS[bare])
    return 'the kernel\'s name of an algorithm, such as "cubic" or "reno"'


def check_values(family: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return settings that come from elsewhere as data, refused where a file's would be."""
    settings = [
        Setting(("tcp", family, name), family, name, value) for name, value in values.items()
    ]
    for problem in _find_problems(settings, None, lambda _: "tcp"):
        raise PydanticCustomError("settings", "{problem}", {"problem": problem})
    return values
