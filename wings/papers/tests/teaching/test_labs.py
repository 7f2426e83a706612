"""The labs: kept without outputs, solved by their solutions, and no wrong answer passes."""

from __future__ import annotations

import ast
import csv
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

from testbed.base import places, proc
from wings.papers.teaching.hand_out import SOURCE
from wings.papers.teaching.runs import VARIABLE
from wings.papers.tests.teaching.misconceptions import BELIEFS

LABS = sorted(SOURCE.glob("*/*.ipynb"))
by_lab = pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
QUICK = "5-buffer"
"""What is measured for it takes least."""
POINTS, TO_EXPLAIN = 20, 8


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(  # type: ignore[no-untyped-call]
        path, as_version=nbformat.NO_CONVERT
    )
    return notebook


def answers(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"
            and cell.metadata.nbgrader.solution]  # fmt: skip


def self_checks(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"
            and cell.metadata.nbgrader.grade]  # fmt: skip


def shown(answer: NotebookNode) -> ast.Module:
    """What students see of an answer, where they are to fill in the rest."""
    return ast.parse(re.sub(r"### BEGIN.*?### END SOLUTION", "...", answer.source, flags=re.DOTALL))


def names(answer: NotebookNode) -> list[str]:
    """What students are to define: functions, and names that are None for now."""
    return [node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.targets[0])
            for node in shown(answer).body
            if isinstance(node, ast.FunctionDef | ast.Assign)]  # fmt: skip


def solve(path: Path, scratch: Path) -> str:
    """What is printed of wrong answers that pass, after a lab ran with its solutions."""
    notebook = read(path)
    asked = [name for cell in answers(notebook) for name in names(cell)]
    checks = [cell.source for cell in self_checks(notebook)]
    notebook.cells.append(
        nbformat.v4.new_code_cell(  # type: ignore[no-untyped-call]
            "from wings.papers.tests.teaching import wrong as answered\n"
            f"print(answered.unrefused(globals(), {asked}, {BELIEFS[path.stem]}, {checks}))\n"
            f"assert not answered.refused(globals(), {checks})"
        )
    )
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(scratch / "pipe"))
    client = NotebookClient(notebook, km=manager, timeout=1200, iopub_timeout=600,
                            startup_timeout=600,
                            resources={"metadata": {"path": str(scratch)}})  # fmt: skip
    client.execute(cleanup_kc=True)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    said: str = notebook.cells[-1].outputs[0].text
    return said.strip()


@pytest.fixture(scope="session")
def measured_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which labs find what was measured for another of these tests."""
    folder = tmp_path_factory.mktemp("labs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        yield folder


def test_there_are_eight() -> None:
    assert [path.stem[0] for path in LABS] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    assert [path.parent.name for path in LABS] == [path.stem for path in LABS]
    assert sorted(BELIEFS) == [path.stem for path in LABS]


@by_lab
def test_it_is_kept_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if cell.outputs or cell.execution_count] == []
    assert notebook.metadata.keys() <= {"kernelspec", "language_info"}


@by_lab
def test_it_predicts_measures_and_explains(path: Path) -> None:
    cells = read(path).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    headings = [line for text in texts for line in text.splitlines() if line.startswith("## ")]
    predict, measure, explain = (
        headings.index(f"## {n}") for n in ("Predict", "Measure", "Explain")
    )
    assert predict < measure < explain
    assert any("runs.run(" in cell.source for cell in cells)
    assert any("wire.packets(" in cell.source for cell in cells)
    assert len(cells) <= 32


@by_lab
def test_only_answers_define_functions(path: Path) -> None:
    notebook = read(path)
    given = {cell.id for cell in answers(notebook)}
    others = [c for c in notebook.cells if c.cell_type == "code" and c.id not in given]
    defined = [node for cell in others for node in ast.walk(ast.parse(cell.source))
               if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda)]  # fmt: skip
    assert defined == []


@by_lab
def test_points_and_grade_ids_are_as_nbgrader_wants_them(path: Path) -> None:
    notebook = read(path)
    about = [cell.metadata.nbgrader for cell in notebook.cells]
    assert len({one.grade_id for one in about}) == len(about)
    assert {one.schema_version for one in about} == {3}
    assert [
        one.grade_id for one in about if not re.fullmatch(r"[a-zA-Z0-9_\-]+", one.grade_id)
    ] == []
    points = {cell.cell_type: 0 for cell in notebook.cells}
    for cell in notebook.cells:
        points[cell.cell_type] += cell.metadata.nbgrader.get("points", 0)
        assert cell.metadata.nbgrader.locked is not cell.metadata.nbgrader.solution
    assert points == {"code": POINTS - TO_EXPLAIN, "markdown": TO_EXPLAIN}
    for cell in answers(notebook):
        begun, ended = (cell.source.count(f"### {word} SOLUTION") for word in ("BEGIN", "END"))
        assert begun == ended >= 1


@by_lab
def test_what_students_are_shown_of_an_answer_is_empty(path: Path) -> None:
    for cell in answers(read(path)):
        numbers = [node.value for node in ast.walk(shown(cell)) if isinstance(node, ast.Constant)
                   and isinstance(node.value, float)]  # fmt: skip
        assert numbers == []


@pytest.mark.thorough
@pytest.mark.nightly(but="^5-buffer$")
@pytest.mark.guest
@pytest.mark.slow
@by_lab
def test_its_solutions_pass_and_wrong_answers_do_not(
    path: Path, jupyter: Path, measured_once: Path, tmp_path: Path
) -> None:
    assert solve(path, tmp_path) == "[]"


HAND_OUT = """
import sys
from pathlib import Path
from wings.papers.teaching.hand_out import release, write_sheet
lab, course = map(Path, sys.argv[1:])
write_sheet(release(lab, course) / f"{lab.name}.ipynb")
"""
"""Hands out one lab, in a course of its own."""


def in_notebooks(*argv: str) -> str:
    """Run a command in the environment of ``make notebooks``, which has nbgrader."""
    command = ("bootstrap/develop.sh", "--notebooks", *argv)
    return proc.run(command, cwd=places.ROOT, env=dict(os.environ), timeout_s=1500).stdout


@pytest.mark.nightly
@pytest.mark.slow
@by_lab
def test_students_get_it_without_solutions_and_with_a_sheet_of_one_page(
    path: Path, tmp_path: Path
) -> None:
    in_notebooks("python", "-P", "-c", HAND_OUT, str(path.parent), str(tmp_path))
    folder = tmp_path / "release" / path.stem
    text = (folder / path.name).read_text(encoding="utf-8")
    released = read(folder / path.name)
    nbformat.validate(released)
    assert "SOLUTION" not in text
    for cell in answers(released):
        assert "raise NotImplementedError()" in cell.source
    free = [c.source for c in released.cells if c.metadata.nbgrader.solution and c not in
            answers(released)]  # fmt: skip
    assert set(free) == {"YOUR ANSWER HERE"}
    sheet = (folder / "sheet.html").read_text(encoding="utf-8")
    asked = [name for cell in answers(released) for name in names(cell)]
    assert [name for name in asked if name not in sheet] == []
    assert "<script" not in sheet
    assert re.findall(rb"/Count (\d+)", (folder / "sheet.pdf").read_bytes()) == [b"1"]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_students_work_stays_and_what_was_removed_comes_back(tmp_path: Path) -> None:
    handed_out = tmp_path / "handed-out"
    again = ("python", "-P", "-m", "wings.papers.teaching.hand_out", str(handed_out))
    assert in_notebooks(*again) == "".join(f"{handed_out / path.stem}: new\n" for path in LABS)
    notebook = handed_out / LABS[0].stem / LABS[0].name
    removed = handed_out / LABS[1].stem / LABS[1].name
    before, gone = notebook.read_bytes(), removed.read_bytes()
    notebook.write_bytes(before + b"\n")
    removed.unlink()
    assert in_notebooks(*again) == f"{removed}: new\n"
    assert in_notebooks(*again) == ""
    assert removed.read_bytes() == gone
    assert notebook.read_bytes() == before + b"\n"


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("path", [lab for lab in LABS if lab.stem == QUICK], ids=[QUICK])
def test_a_teacher_grades_with_the_tools_own_commands(
    path: Path, measured_once: Path, tmp_path: Path
) -> None:
    lab = path.stem
    shutil.copytree(path.parent, tmp_path / "source" / lab)
    course = f"--course-dir={tmp_path}"
    in_notebooks("nbgrader", "generate_assignment", lab, course)
    for student, notebook in (("solver", path),
                              ("beginner", tmp_path / "release" / lab / path.name)):  # fmt: skip
        shutil.copytree(notebook.parent, tmp_path / "submitted" / student / lab)
    in_notebooks("nbgrader", "autograde", lab, course)
    database = f"--db=sqlite:///{tmp_path}/gradebook.db"
    in_notebooks("nbgrader", "export", database, f"--to={tmp_path}/grades.csv")
    with (tmp_path / "grades.csv").open(encoding="utf-8") as stream:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(stream)}
    assert scores == {"solver": POINTS - TO_EXPLAIN, "beginner": 0.0}
