"""The notebooks: kept without outputs, without functions of their own, and each runs to its end."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

from analysis.plot.chart import MIME
from testbed.base import places
from wings.papers.notebooks.show import SAMPLES

NOTEBOOKS = sorted((places.ROOT / "wings" / "papers" / "notebooks").glob("*.ipynb"))
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
MOST_BYTES = 22_000_000
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(  # type: ignore[no-untyped-call]
        path, as_version=nbformat.NO_CONVERT
    )
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def execute(path: Path, scratch: Path) -> NotebookNode:
    """Run the notebook over a pipe of its own, in a folder of its own."""
    notebook = read(path)
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(scratch / "pipe"))
    client = NotebookClient(notebook, km=manager, timeout=600, iopub_timeout=600,
                            startup_timeout=600,
                            resources={"metadata": {"path": str(scratch)}})  # fmt: skip
    client.execute(cleanup_kc=True)
    return notebook


def test_there_is_a_tour_one_for_each_source_and_the_lab() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["00", "01", "02", "03", "04", "05", "06", "07"]


@by_name
def test_it_is_kept_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert outputs(notebook) == []
    assert [c.execution_count for c in code_cells(notebook) if c.execution_count is not None] == []
    assert notebook.metadata.keys() <= {"kernelspec", "language_info"}
    assert [cell.id for cell in notebook.cells if "execution" in cell.metadata] == []


@by_name
def test_it_calls_functions_and_defines_none(path: Path) -> None:
    nodes = [n for cell in code_cells(read(path)) for n in ast.walk(ast.parse(cell.source))]
    assert any(isinstance(node, ast.Call) for node in nodes)
    assert [ast.unparse(node) for node in nodes if isinstance(node, DEFINITIONS)] == []


@by_name
def test_it_is_short_and_ends_with_questions(path: Path) -> None:
    cells = read(path).cells
    assert len(cells) <= 30
    assert cells[0].source.startswith("# ")
    assert cells[-1].source.startswith("## Questions")


@pytest.mark.nightly(but="^00")
@by_name
def test_it_runs_on_the_samples_and_shows_charts_and_tables(
    path: Path, jupyter: Path, tmp_path: Path
) -> None:
    notebook = execute(path, tmp_path)
    shown = [output.data for output in outputs(notebook) if "data" in output]
    assert [output for output in outputs(notebook) if output.get("name") == "stderr"] == []
    assert any(MIME in data and "image/svg+xml" in data for data in shown)
    assert any("<table" in data.get("text/html", "") for data in shown)
    said = "".join(output.text for output in outputs(notebook) if output.output_type == "stream")
    assert re.search("analysis/(baselines|samples)/", said)
    loads = r"virtual kernel \S+, .*\n.* loads proven in .* cells, n = [16] in"
    assert re.search(rf"{loads}|virtual kernel \S+, of .*\n.* scenarios proven", said)
    assert "<script" not in "".join(data.get("text/html", "") for data in shown)


def test_samples_are_small_and_text_but_for_the_captures_of_scenarios() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file()]
    assert files
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert {path.suffix for path in files if b"\0" in path.read_bytes()} == {".pcap"}
