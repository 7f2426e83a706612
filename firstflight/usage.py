"""Usage answers (help, version, wrong words), given before anything is set up.

A stranger's machine has no Python packages yet, and a typing error must not fetch them.  The verbs
and their options are read from ``firstflight/verbs.json``, which ``make reference`` writes.  What
this lets pass, the program itself still checks.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VERBS_FILE = ROOT / "firstflight" / "verbs.json"
PROGRAM = "./run.sh"
DEFAULT_VERB = "run"
COMPLETION = "completion"
"""The verb that is answered here."""
EXIT_USAGE = 2
_HELP = ("-h", "--help")
SHELLS = ("bash",)
_SCRIPT = """\
# Completion of Firstflight's run.sh, for bash 4.4 or newer: put this into ~/.bashrc
#   source <(/path/to/firstflight/run.sh completion bash)
_firstflight() {
  # Another project's run.sh is not ours to complete, and never to be started.
  [[ $(readlink -f -- "${COMP_WORDS[0]/#\\~/$HOME}") == @RUN@ ]] || return 0
  mapfile -t COMPREPLY < <(
    @PYTHON@ -I -S @ANSWERS@ "${COMP_WORDS[@]:1:COMP_CWORD}" \\
      2>/dev/null
  )
}
complete -o bashdefault -o default -F _firstflight run.sh
"""


class VerbHelp(NamedTuple):
    """One verb: its help, its options (and whether each takes a value), and what those may be.

    Of a group of verbs one must be named, unless the help has it in brackets.
    """

    help: str
    options: Mapping[str, bool]
    choices: Mapping[str, Sequence[str]]
    is_group: bool

    @property
    def is_whole(self) -> bool:
        """Whether the program may be called with no more than this."""
        return not self.is_group or " [COMMAND]" in self.help


class Answer(NamedTuple):
    """An answer and its exit code."""

    text: str
    code: int = 0


def read_verbs() -> dict[str, VerbHelp]:
    """Return the help of each verb by its words, as ``pages list``; ``""`` is the root."""
    listed = json.loads(VERBS_FILE.read_text(encoding="utf-8"))
    return {name: VerbHelp(**verb) for name, verb in listed.items()}


def answer(arguments: Sequence[str], sections: Mapping[str, VerbHelp]) -> Answer | None:
    """Return what to say of ``arguments``: help, the version, what is wrong; ``None``: go on."""
    verb, section, rest = "", sections[""], list(arguments or [DEFAULT_VERB])
    given = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            name, _, value = word.partition("=") if word.startswith("--") else (word[:2], "", "")
            if name not in section.options:
                return _wrong(verb, f"no such option: {name}", name, section.options)
            if name in _HELP:
                return Answer(section.help)
            if name == "--version":
                return Answer(_read_version())
            if section.options[name] and not value and word == name:
                rest = rest[1:]
        elif not section.is_group:
            given.append(word)
        else:
            longer = f"{verb} {word}".strip()
            if longer not in sections:
                beside = (name.rpartition(" ") for name in sections if name)
                names = [last for group, _, last in beside if group == verb]
                return _wrong(verb, f"no such verb: {longer}", word, names)
            verb, section = longer, sections[longer]
    if verb == COMPLETION:
        return _complete(verb, [*given, *rest])
    return None if section.is_whole else Answer(section.help, EXIT_USAGE)


def _complete(verb: str, shells: Sequence[str]) -> Answer:
    """Return the script that the verb prints."""
    if len(shells) != 1 or shells[0] not in SHELLS:
        problem = f"{' '.join(shells) or 'no shell'}: name one of {', '.join(SHELLS)}"
        return _wrong(verb, problem, "", ())
    return Answer(render_completion().rstrip("\n"))


def render_completion(root: Path = ROOT) -> str:
    """Return the script that bash reads, for the work tree in ``root``."""
    places = {
        "@RUN@": root / "run.sh",
        "@PYTHON@": sys._base_executable,  # type: ignore[attr-defined]
        "@ANSWERS@": root / "firstflight" / "completion.py",
    }
    return re.sub("@[A-Z]+@", lambda match: shlex.quote(str(places[match[0]])), _SCRIPT)


def _wrong(verb: str, problem: str, word: str, valid: Iterable[str]) -> Answer:
    from testbed.base.suggest import did_you_mean  # who types well does not pay for it

    command = f"{PROGRAM} {verb}".strip()
    return Answer(
        f"error: {problem}{did_you_mean(word, valid)}; `{command} --help` names all", EXIT_USAGE
    )


def _read_version() -> str:
    from testbed.base.places import describe_version

    return describe_version()


def answer_first(arguments: Sequence[str]) -> int | None:
    """Print what there is to say of a command line; ``None``: it may go on, else the exit code."""
    said = answer(arguments, read_verbs())
    if said is None:
        return None
    print(said.text, file=sys.stderr if said.code else sys.stdout)
    return said.code
