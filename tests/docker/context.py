"""The context of an image: what .dockerignore lets through of the work tree, copied to a folder.

Rules are docker's: a pattern is of the whole path, below a folder that matches all is left out, and
the last pattern that matches a path decides.  What git ignores is of one machine alone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePath

from testbed.base import places

RULES = ".dockerignore"
_OF_A_MACHINE = shutil.ignore_patterns(".*cache", ".git", ".hypothesis", "__pycache__", "dist",
                                       "my-labs", "node_modules", "*.tar.xz")  # fmt: skip


def read_rules(path: Path) -> list[tuple[re.Pattern[str], bool]]:
    """Return the patterns of a file, each with whether what it matches is left out."""
    rules = []
    for line in path.read_text().splitlines():
        if words := line.partition("#")[0].strip():
            pattern = words.removeprefix("!").strip("/")
            parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
            known = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
            regex = "".join(known.get(part, re.escape(part)) for part in parts)
            rules.append((re.compile(rf"{regex}(/.*)?"), not words.startswith("!")))
    return rules


def is_left_out(path: PurePath, rules: Sequence[tuple[re.Pattern[str], bool]]) -> bool:
    """Return whether ``rules`` leave out the file ``path`` of the context."""
    verdicts = [leaves_out for regex, leaves_out in rules if regex.fullmatch(path.as_posix())]
    return verdicts[-1] if verdicts else False


def copy_context(folder: Path) -> None:
    """Copy what the image is built of to ``folder``, which is new, and the rules."""
    rules = read_rules(places.ROOT / RULES)

    def ignored(within: str, names: list[str]) -> set[str]:
        here = Path(within)
        left = set(_OF_A_MACHINE(within, names))
        if here == places.ROOT:
            left |= {"results"}
        return left | {
            name
            for name in names
            if (here / name).is_file()
            and is_left_out((here / name).relative_to(places.ROOT), rules)
        }

    shutil.copytree(places.ROOT, folder, ignore=ignored)
    shutil.copy(places.ROOT / RULES, folder)
    for each in sorted(folder.rglob("*"), reverse=True):
        if each.is_dir() and not any(each.iterdir()):
            each.rmdir()
