"""Sheets of the labs: of each notebook its questions, with room for answers, on one page to print.

A sheet is made of the notebook itself: of the cells tagged ``sheet``, of the names that an answer
has to define, and of the places for a few sentences.  HTML is made of Markdown, PDF of that HTML by
`analysis.formats.pdf`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt

TAG = "sheet"
TEMPLATE = Path(__file__).with_name("sheet.html.jinja")


def make_sheet(notebook: Path) -> str:
    """Return the sheet of ``notebook`` as an HTML page."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    # No HTML is let through: a sheet is text.
    to_html = MarkdownIt("commonmark", {"html": False}).render
    parts = [{**part, "html": to_html(part["text"])} if "text" in part else part for cell in cells
             for part in _parts(cell)]  # fmt: skip
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(parts=parts, name=notebook.stem) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a cell gives to the sheet: text, answers in a few signs, or room to write."""
    source, about = "".join(cell["source"]), cell["metadata"]
    answered = about.get("nbgrader", {}).get("solution", False)
    if TAG in about.get("tags", ()):
        yield {"text": source}
    elif answered and cell["cell_type"] == "code":
        yield {"blanks": list(_blanks(source))}
    elif answered:
        yield {"room": True}


def _blanks(source: str) -> Iterator[str]:
    """Yield what an answer defines: functions with their parameters, names, keys of dictionaries.

    The first assignment of a name counts, which is the one that students see.
    """
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            yield f"{node.name}({ast.unparse(node.args)})"
        elif isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
            if name not in names and isinstance(node.value, ast.Dict):
                keys = [ast.literal_eval(key) for key in node.value.keys if key is not None]
                yield from (f"{name}: {key}" for key in keys)
            elif name not in names and _is_open(node.value):
                yield name
            names.add(name)


def _is_open(value: ast.expr) -> bool:
    return all(
        part.value is None for part in ast.walk(value) if isinstance(part, ast.Constant)
    ) and (isinstance(value, ast.Constant | ast.Tuple))
