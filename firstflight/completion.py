"""Completion of command lines in bash: the script that a shell reads, and what it asks at each TAB.

Debian's own Python answers, from ``docs/command-line.md``: nothing has to be set up for it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # -I keeps it out

from firstflight.usage import REFERENCE, ROOT, VerbHelp, parse_reference

SHELLS = ("bash",)
_SCRIPT = """\
# Completion of Firstflight's run.sh, for bash 4.4 or newer: put this into ~/.bashrc
#   source <(/path/to/firstflight/run.sh completion bash)
_firstflight() {
  # Another project's run.sh is not ours to complete, and never to be started.
  [[ $(readlink -f -- "${COMP_WORDS[0]/#\\~/$HOME}") == @RUN@ ]] || return 0
  mapfile -t COMPREPLY < <(
    /usr/bin/python3 -I -S @ANSWERS@ "${COMP_WORDS[@]:1:COMP_CWORD}" \\
      2>/dev/null
  )
}
complete -o bashdefault -o default -F _firstflight run.sh
"""
_CHOICES = re.compile(r"^  .*?(--[a-z-]+) \[([a-z0-9|-]+)\]", re.MULTILINE)


class Places(NamedTuple):
    """A folder of names, and how they end there."""

    folder: str
    suffix: str = ""


OPTION_PLACES: Mapping[str, Places] = {"--kernel-version": Places("testbed/kernel/pins")}
ARGUMENT_PLACES: Mapping[str, Places] = {
    "baseline show": Places("analysis/baselines"),
    "pages build": Places("pages"),
    "pages export": Places("pages"),
    "pages show": Places("pages"),
    "pages verify": Places("pages"),
    "scenario": Places("scenarios", ".toml"),
    "serve": Places("pages"),
}
"""Where the names are that a verb takes; others take files, which the shell completes itself."""


def render_completion(root: Path = ROOT) -> str:
    """Return the script that bash reads, for the work tree in ``root``."""
    places = {"@RUN@": root / "run.sh", "@ANSWERS@": root / "firstflight" / "completion.py"}
    return re.sub("@[A-Z]+@", lambda found: shlex.quote(str(places[found[0]])), _SCRIPT)


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
        listed = dict(_CHOICES.findall(section.help)).get(option, "")
        place = OPTION_PLACES.get(option)
        return _names(root, place) if place else listed.split("|")
    if typed.startswith("-"):
        return section.options
    if not section.needs:
        return [name.split()[-1] for name in sections if name and name.rpartition(" ")[0] == verb]
    if verb == "completion":
        return SHELLS
    return _names(root, ARGUMENT_PLACES.get(verb))


def _names(root: Path, place: Places | None) -> list[str]:
    if place is None:
        return []
    found = [path.name for path in (root / place.folder).glob(f"*{place.suffix}")]
    return [name.removesuffix(place.suffix) for name in found if not name.startswith(("_", "."))]


if __name__ == "__main__":
    print(*complete(sys.argv[1:], parse_reference(REFERENCE.read_text("utf-8"))), sep="\n")
