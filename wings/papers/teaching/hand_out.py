"""Labs as they are handed out: nbgrader's version for students, and a sheet of each to print.

``python -P -m wings.papers.teaching.hand_out FOLDER`` puts what is not there yet into FOLDER; a
file that is there is a student's work, and stays.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from analysis.formats.pdf import print_page
from testbed.base import proc
from testbed.base.whole_file import open_whole
from wings.papers.teaching.sheets import make_sheet

SOURCE = Path(__file__).with_name("source")
SHEETS = ("sheet.html", "sheet.pdf")


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


if __name__ == "__main__":
    for path in hand_out(Path(sys.argv[1])):
        print(f"{path}: new")
