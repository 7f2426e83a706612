"""A comparison in files for a CI service, and as JSON."""

from __future__ import annotations

from pathlib import Path

from analysis.regression.compare.comparison import Comparison
from analysis.regression.compare.document import describe_comparison
from analysis.regression.compare.junit import render_junit
from analysis.regression.compare.markdown import render_markdown
from testbed.base.whole_file import write_whole

__all__ = ["describe_comparison", "write_files"]


def write_files(comparison: Comparison, junit: Path | None, markdown: Path | None) -> None:
    """Write JUnit XML and a Markdown comment where they are asked for.

    Raises:
        StorageError: a file cannot be written.
    """
    for path, render in ((junit, render_junit), (markdown, render_markdown)):
        if path is not None:
            remedy = "make its folder, or choose another place"
            write_whole(path, render(comparison), remedy)
