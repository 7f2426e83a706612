"""Sheets: questions and room for answers, and no answer; text of a notebook is never markup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wings.papers.teaching.hand_out import make_sheet


def cell(
    kind: str, source: str, solution: bool = False, tags: tuple[str, ...] = ()
) -> dict[str, Any]:
    about = {"nbgrader": {"solution": solution}, "tags": list(tags)}
    return {"cell_type": kind, "metadata": about, "source": source.splitlines(keepends=True)}


def test_a_sheet_has_questions_and_blanks(tmp_path: Path) -> None:
    notebook = tmp_path / "0-example.ipynb"
    cells = [cell("markdown", "# Title\n\n**a.** How <b>much</b>?", tags=("sheet",)),
             cell("markdown", "not printed"), cell("code", "import math"),
             cell("code", "def rtt(a_ms, b_ms):\n    raise NotImplementedError()", solution=True),
             cell("code", "one = None\nmany = {1: None, 'x': None}\npair = (None, None)\none = 3.5",
                  solution=True), cell("markdown", "YOUR ANSWER HERE", solution=True)]  # fmt: skip
    notebook.write_text(json.dumps({"cells": cells}))
    sheet = make_sheet(notebook)
    assert "<h1>Title</h1>" in sheet
    assert "How &lt;b&gt;much&lt;/b&gt;?" in sheet
    assert "not printed" not in sheet
    for blank in ("rtt(a_ms, b_ms) =", "one =", "many: 1 =", "many: x =", "pair ="):
        assert sheet.count(f"<code>{blank}") == 1
    assert "3.5" not in sheet
    assert sheet.count('class="room"') == 1
