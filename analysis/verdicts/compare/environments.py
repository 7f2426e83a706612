"""Differences between the environments of two results folders, and what they are compared by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis.records.cells import experiment_of
from analysis.records.results import Results
from analysis.verdicts.compare.comparison import Part
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean

ALL = "all"
PAGES = "pages."
ROOT = "root"
SHOWN = 40
"""Characters of a value in a message; digests are longer."""
FIRST = (ROOT, "kernel.", "code.bundle", PAGES, "version.", "architecture", "code.")
"""What can move loads, the likeliest first; files and packages of the user land come after."""


def split_across(
    across: Iterable[str], parts: Iterable[str], knobs: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split names into environment parts and knobs; a name may begin several parts.

    Raises:
        ConfigurationError: a name is neither.
    """
    known_parts, known_knobs = set(parts), set(knobs)
    valid = {ALL, *known_knobs, *known_parts, *(name.partition(".")[0] for name in known_parts)}
    environment, swept, problems = [], [], []
    for name in dict.fromkeys(across):
        if name in known_knobs:
            swept.append(name)
        elif name == ALL or any(covers(name, part) for part in known_parts):
            environment.append(name)
        else:
            heads = ", ".join(sorted({part.partition(".")[0] for part in known_parts}))
            problems.append(
                f"--across {name}: neither a part of the environment ({heads}, or one of them by "
                f"its full name, or {ALL}) nor a knob{did_you_mean(name, valid)}"
            )
    if problems:
        raise ConfigurationError(problems)
    return tuple(environment), tuple(swept)


def covers(name: str, part: str) -> bool:
    """Whether ``name`` means ``part``: all, the part itself, or what its name begins with."""
    return name in (ALL, part) or part.startswith(f"{name}.")


def parts_of(results: Results) -> dict[str, str]:
    """Return everything in the folder's environment that can influence a result, by name.

    Pages are ``pages.NAME``; the kernel's version is ``kernel.version``, a client's own word
    about its version ``version.CLIENT``.
    """
    environment = results.manifest.get("environment", {})
    pages = {f"{PAGES}{name}": value for name, value in environment.get("pages", {}).items()}
    clients = {f"version.{name}": value for name, value in results.identity.clients.items()}
    version = results.identity.kernel_version
    kernel = {"kernel.version": version} if version is not None else {}
    return {**kernel, **environment.get("parts", {}), **pages, **clients}


def differing_parts(base: Results, new: Results) -> tuple[Part, ...]:
    """Return every part that differs, what is likeliest to move loads first, then by name.

    Of pages and clients only those that are in both: another sweep shows in its cells.  So do
    programs, if the clients differ: each client brings those that it runs.  A root stands for the
    programs of its guests.
    """
    ours, theirs = parts_of(base), parts_of(new)
    swept = [PAGES, "version."]
    if _clients_of(base) != _clients_of(new) or (ROOT in ours) != (ROOT in theirs):
        swept += ["package.", "program.", "file."]
    return tuple(
        Part(name, ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys(), key=_order)
        if ours.get(name) != theirs.get(name)
        and not (name.startswith(tuple(swept)) and (name in ours) != (name in theirs))
    )


def are_draws(parts: Iterable[Part]) -> bool:
    """Whether the environments differ in more than pages, which draw nothing."""
    return any(not part.name.startswith(PAGES) for part in parts)


def _order(name: str) -> tuple[int, str]:
    return next((i for i, head in enumerate(FIRST) if name.startswith(head)), len(FIRST)), name


def _clients_of(results: Results) -> set[str]:
    """The clients that were asked for: their programs are in the environment."""
    conditions = experiment_of(results.manifest).get("conditions", ())
    return {str(condition.get("client")) for condition in conditions}


def kernel_of(results: Results) -> str:
    """Return the name of the kernel: by the records, else by what was asked."""
    return results.identity.kernel or str(experiment_of(results.manifest)["kernel"])


def refuse_unequal(
    base: Results, new: Results, parts: Sequence[Part], across: Sequence[str]
) -> None:
    """Refuse other pages without their being under test, and folders that mix environments.

    Raises:
        ConfigurationError: naming each difference with both values, and the remedy.
    """
    problems = [*_strangers(base), *_strangers(new)]
    problems += [
        f"the environments differ: {part.name} is {_shown(part.base)} in BASE and "
        f"{_shown(part.new)} in NEW; load one page in both, or pass --across {part.name} if it is "
        "what is under test"
        for part in parts
        if part.name.startswith(PAGES) and not any(covers(name, part.name) for name in across)
    ]
    if problems:
        raise ConfigurationError(problems)


def _strangers(results: Results) -> list[str]:
    """Records that another environment made than the one that the manifest describes."""
    described = results.manifest.get("environment", {}).get("id")
    recorded = results.identity.environment
    if described is None or recorded is None or described == recorded:
        return []
    return [
        f"{results.folder}: its records come from environment {recorded}, its manifest describes "
        f"{described}; a folder is compared only as it was measured"
    ]


def _shown(value: str | None) -> str:
    if value is None:
        return "absent"
    return repr(value if len(value) <= SHOWN else f"{value[:SHOWN]}...")
