"""Table of the rooms in CONTRIBUTING.md: each package and the first sentence of its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from testbed.base.places import ROOT

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- rooms -->\n", "<!-- end -->"
PACKAGES = ("firstflight", "testbed", "analysis", "wings")


def render_rooms(text: str) -> str:
    """Return the ``text`` of CONTRIBUTING.md with its table of rooms made from the packages.

    Raises:
        ValueError: the text has no place for it.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{CONTRIBUTING} has no {BEGIN.strip()} and {END}")
    rows = (f"| `{room}/` | {sentence} |" for room, sentence in list_rooms())
    return f"{before}{BEGIN}| room | what is in it |\n|---|---|\n" + "\n".join((*rows, end)) + after


def list_rooms() -> Iterator[tuple[str, str]]:
    """Yield each package and the one sentence that its docstring begins with; of wings no tests."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("__init__.py")):
            if "tests" in file.relative_to(ROOT).parts:
                continue
            docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
            sentence = docstring.partition("\n\n")[0].replace("``", "`")
            yield str(Path(file).parent.relative_to(ROOT)), " ".join(sentence.split())


def write_rooms() -> None:
    """Write the table into CONTRIBUTING.md."""
    CONTRIBUTING.write_text(render_rooms(CONTRIBUTING.read_text("utf-8")), encoding="utf-8")
