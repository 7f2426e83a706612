"""Completion of command lines: what bash asks at each TAB, by the script that `completion` prints.

The locked Python answers, from ``firstflight/verbs.json``: no package has to be there for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # -I keeps it out

from firstflight.usage import ROOT, SHELLS, VerbHelp, read_verbs
from testbed.base.wings import provided


class Places(NamedTuple):
    """A folder of names, and how they end there."""

    folder: str
    suffix: str = ""


OPTION_PLACES: Mapping[str, Places] = {
    "--kernel-version": Places("testbed/kernel/pins"),
    "--link": Places("profiles", ".toml"),
}
ARGUMENT_PLACES: Mapping[str, Places] = {
    "baseline show": Places("analysis/baselines"), "links show": Places("profiles", ".toml"),
    "serve": Places("pages"),
    **{verb.name: Places(*verb.load()) for verb in provided("argument_places")},
}  # fmt: skip
"""Where the names are that a verb takes; others take files, which the shell completes itself."""


def complete(
    words: Sequence[str], sections: Mapping[str, VerbHelp], root: Path = ROOT
) -> list[str]:
    """Return what the last of ``words`` may become; nothing: a file, or nothing that is known."""
    *before, typed = words or [""]
    verb, option = "", ""
    for word in before:
        if word.startswith("-"):
            option = word if sections[verb].options.get(word) else ""
        elif option:
            option = ""
        elif f"{verb} {word}".strip() in sections:
            verb = f"{verb} {word}".strip()
    return sorted(word for word in _valid(verb, option, typed, sections, root)
                  if word and word.startswith(typed))  # fmt: skip


def _valid(
    verb: str, option: str, typed: str, sections: Mapping[str, VerbHelp], root: Path
) -> Iterable[str]:
    section = sections[verb]
    if option:
        place = OPTION_PLACES.get(option)
        return _names(root, place) if place else section.choices.get(option, ())
    if typed.startswith("-"):
        return section.options
    if section.is_group:
        return [name.split()[-1] for name in sections if name and name.rpartition(" ")[0] == verb]
    if verb == "completion":
        return SHELLS
    return _names(root, ARGUMENT_PLACES.get(verb))


def _names(root: Path, place: Places | None) -> list[str]:
    if place is None:
        return []
    names = [path.name for path in (root / place.folder).glob(f"*{place.suffix}")]
    return [name.removesuffix(place.suffix) for name in names if not name.startswith(("_", "."))]


if __name__ == "__main__":
    print(*complete(sys.argv[1:], read_verbs()), sep="\n")
