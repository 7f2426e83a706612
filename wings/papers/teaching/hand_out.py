"""Labs as they are handed out: nbgrader's version for students, and a sheet of each to print.

``python -P -m wings.papers.teaching.hand_out FOLDER`` puts what is not there yet into FOLDER; a
file that is there is a student's work, and stays.  A sheet is made of the notebook itself: of the
cells tagged ``sheet``, of the names that an answer has to define, and of the places for a few
sentences.  HTML is made of Markdown, PDF of that HTML by `analysis.formats.pdf`.
"""

from __future__ import annotations

import ast
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from markdown_it import MarkdownIt

from analysis.formats.pdf import print_page
from testbed.base import proc
from testbed.base.whole_file import open_whole

SOURCE = Path(__file__).with_name("source")
SHEETS = ("sheet.html", "sheet.pdf")
TAG = "sheet"
TEMPLATE = Path(__file__).with_name("sheet.html.jinja")


def hand_out(folder: Path) -> list[Path]:
    """Put the files that ``folder`` does not have into it, a folder for each lab.

    Return what is new: a lab's folder, or files where the folder was there.

    Raises:
        CommandError: nbgrader failed; what it said is in the message.
        MissingError: a program is missing.
        StorageError: a file cannot be written.
    """
    new = []
    for lab in sorted(path for path in SOURCE.iterdir() if path.is_dir()):
        place = folder / lab.name
        names = [*sorted(path.name for path in lab.iterdir() if path.is_file()), *SHEETS]
        missing = [place / name for name in names if not (place / name).exists()]
        if not missing:
            continue
        new += missing if place.exists() else [place]
        with tempfile.TemporaryDirectory(prefix="course-") as course:
            released = release(lab, Path(course))
            write_sheet(released / f"{lab.name}.ipynb")
            place.mkdir(parents=True, exist_ok=True)
            for path in missing:
                # Whole or not at all: what an interrupted copy left would be taken for work.
                with open_whole(path, "then hand out again") as file:
                    file.write((released / path.name).read_bytes())
    return new


def release(lab: Path, course: Path) -> Path:
    """Have nbgrader make the students' version of ``lab`` in ``course``; return its folder.

    Raises:
        CommandError: it failed; what it said is in the message.
    """
    shutil.copytree(lab, course / "source" / lab.name)
    proc.run([sys.executable, "-m", "nbgrader", "generate_assignment", lab.name,
              f"--course-dir={course}", f"--db=sqlite:///{course}/gradebook.db", "--create"],
             cwd=course, timeout_s=300)  # fmt: skip
    return course / "release" / lab.name


def write_sheet(notebook: Path) -> None:
    """Write the sheet of ``notebook`` beside it, as sheet.html and sheet.pdf.

    Raises:
        MissingError: there is no headless Chromium.
    """
    page, pdf = (notebook.with_name(name) for name in SHEETS)
    page.write_text(make_sheet(notebook), encoding="utf-8")
    print_page(page, pdf)


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


if __name__ == "__main__":
    for path in hand_out(Path(sys.argv[1])):
        print(f"{path}: new")
