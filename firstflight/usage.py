"""Usage answers (help, version, wrong words), given before anything is set up.

``run.sh`` asks first, with Debian's own Python and its standard library: a stranger's machine has
neither the packages nor the Python environment yet, and a typing error must not fetch them.  The
verbs, their options and what each verb needs are read from ``docs/command-line.md``, which
``firstflight.reference`` writes.  What this lets pass, the program itself still checks.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "command-line.md"
PROGRAM = "./run.sh"
DEFAULT_VERB = "run"
NOTHING = "nothing"
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
    /usr/bin/python3 -I -S @ANSWERS@ "${COMP_WORDS[@]:1:COMP_CWORD}" \\
      2>/dev/null
  )
}
complete -o bashdefault -o default -F _firstflight run.sh
"""


class VerbHelp(NamedTuple):
    """One verb: its help, its options (and whether each takes a value), what it needs.

    ``needs`` of a group of verbs is empty: one of them must be named.  ``needs_with`` is what a
    verb needs where an option is given.
    """

    help: str
    options: Mapping[str, bool]
    needs: str
    needs_with: Mapping[str, str]


class Answer(NamedTuple):
    """An answer and its exit code; for a command that may go on, the answer is what it needs."""

    text: str
    code: int = 0


def parse_reference(text: str) -> dict[str, VerbHelp]:
    """Return the help of each verb in the reference, as ``pages list``; ``""`` is the root."""
    sections = {}
    for part in text.split(f"\n## {PROGRAM}")[1:]:
        head, _, rest = part.partition("\n")
        before, _, fenced = rest.partition("\n```text\n")
        help_text = fenced.partition("\n```")[0]
        needs, *others = before.partition("Needs: ")[2].partition("\n")[0].split("; with ")
        needs_with = dict(other.split(": ") for other in others)
        sections[head.strip()] = VerbHelp(help_text, _parse_options(help_text), needs, needs_with)
    return sections


def _parse_options(help_text: str) -> dict[str, bool]:
    """Return the options that a help text lists as ``  -o, --output DIR  What for.``."""
    options: dict[str, bool] = {}
    for line in help_text.splitlines():
        if not line.startswith("  -"):
            continue
        words = line[2:].partition("  ")[0].replace(",", "").split()
        names = [word for word in words if word.startswith("-")]
        options |= dict.fromkeys(names, len(names) < len(words))
    return options


def answer(arguments: Sequence[str], sections: Mapping[str, VerbHelp]) -> Answer:
    """Return what to say of ``arguments``: help, the version, what is wrong, or what is needed."""
    verb, section, rest = "", sections[""], list(arguments or [DEFAULT_VERB])
    needs, given = "", []
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
            needs = section.needs_with.get(name, needs)
            if section.options[name] and not value and word == name:
                rest = rest[1:]
        elif section.needs:
            given.append(word)
        else:
            longer = f"{verb} {word}".strip()
            if longer not in sections:
                return _wrong(verb, f"no such verb: {longer}", word, _verbs(verb, sections))
            verb, section = longer, sections[longer]
    if section.needs == NOTHING:
        return _complete(verb, [*given, *rest])
    needs = needs or section.needs
    return Answer(f"needs {needs}") if needs else Answer(section.help, EXIT_USAGE)


def _complete(verb: str, shells: Sequence[str]) -> Answer:
    """Return the script of the one verb that needs nothing."""
    if len(shells) != 1 or shells[0] not in SHELLS:
        problem = f"{' '.join(shells) or 'no shell'}: name one of {', '.join(SHELLS)}"
        return _wrong(verb, problem, "", ())
    return Answer(render_completion().rstrip("\n"))


def render_completion(root: Path = ROOT) -> str:
    """Return the script that bash reads, for the work tree in ``root``."""
    places = {"@RUN@": root / "run.sh", "@ANSWERS@": root / "firstflight" / "completion.py"}
    return re.sub("@[A-Z]+@", lambda match: shlex.quote(str(places[match[0]])), _SCRIPT)


def _verbs(group: str, sections: Mapping[str, VerbHelp]) -> list[str]:
    """Return the last words of the verbs in ``group``."""
    return [name.split()[-1] for name in sections if name and name.rpartition(" ")[0] == group]


def _wrong(verb: str, problem: str, word: str, valid: Iterable[str]) -> Answer:
    from testbed.base.suggest import did_you_mean  # who types well does not pay for it

    command = f"{PROGRAM} {verb}".strip()
    return Answer(
        f"error: {problem}{did_you_mean(word, valid)}; `{command} --help` names all", EXIT_USAGE
    )


def _read_version() -> str:
    from testbed.base.places import describe_version

    return describe_version()


def main() -> int:
    """Answer the command line on standard output and return the exit code."""
    sys.path.insert(0, str(ROOT))  # where the testbed is; -I keeps all other places out
    sections = parse_reference(REFERENCE.read_text(encoding="utf-8"))
    text, code = answer(sys.argv[1:], sections)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
