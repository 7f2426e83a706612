"""Labs as they are handed out: nbgrader's version for students, and a sheet of each to print.

``python -P -m analysis.labs.hand_out FOLDER`` puts those that are not there yet into FOLDER; a lab
that is there is a student's work, and stays.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from analysis.labs.sheets import make_sheet, print_sheet
from testbed.base import proc

SOURCE = Path(__file__).with_name("source")


def hand_out(folder: Path) -> list[str]:
    """Put the labs that ``folder`` does not have into it, each in a folder; return their names.

    Raises:
        CommandError: nbgrader failed; what it said is in the message.
        MissingError: a program is missing.
    """
    names = [path.name for path in sorted(SOURCE.iterdir()) if path.is_dir()]
    new = [name for name in names if not (folder / name).exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="course-") as course:
        for name in new:
            shutil.copytree(SOURCE / name, Path(course) / "source" / name)
            proc.run(
                [sys.executable, "-m", "nbgrader", "generate_assignment", name,
                 f"--course-dir={course}", f"--db=sqlite:///{course}/gradebook.db", "--create"],
                cwd=Path(course), timeout_s=300,
            )  # fmt: skip
            released = Path(course) / "release" / name
            write_sheet(released / f"{name}.ipynb")
            shutil.copytree(released, folder / name)
    return new


def write_sheet(notebook: Path) -> None:
    """Write the sheet of ``notebook`` beside it, as sheet.html and sheet.pdf.

    Raises:
        MissingError: there is no headless Chromium.
    """
    page = notebook.with_name("sheet.html")
    page.write_text(make_sheet(notebook), encoding="utf-8")
    print_sheet(page, notebook.with_name("sheet.pdf"))


if __name__ == "__main__":
    where = Path(sys.argv[1])
    for made in hand_out(where):
        print(f"{where / made}: new")
