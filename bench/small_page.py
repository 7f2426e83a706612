"""Small synthetic pages of the bench, built like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from testbed.pages.build import build_page
from testbed.pages.catalogue import FACTS_NAME, TABLE_NAME
from wings.pages.table import COLUMNS

HOST = "bench.example"
# What the first measurements of the virtual kernel fetched, too: head and body of a 10 KB object.
RESPONSE_BYTES = 10_237
FACTS = f"""\
title = "Made for the bench"
url = "http://{HOST}/"
recorded = 2026-01-01
source = "Made for the bench."
licence = "None needed."
bodies = "Synthetic."
deviations = []
"""


def build_small_page(folder: Path) -> Path:
    """Build the page of one object below ``folder``, and return the built folder."""
    root = {"id": "0", "mime": "text/html", "how": "root", "transfer_bytes": str(RESPONSE_BYTES)}
    return build_rows(folder, "small", [root])


def build_rows(folder: Path, name: str, rows: Iterable[Mapping[str, str]]) -> Path:
    """Build a page of ``rows`` of a resource table below ``folder``, and return the built folder.

    Every row is of one host, and answered with 200.
    """
    source = folder / name
    source.mkdir()
    (source / FACTS_NAME).write_text(FACTS)
    lines = [
        ",".join({"host": HOST, "status": "200", **row}.get(column, "") for column in COLUMNS)
        for row in rows
    ]
    (source / TABLE_NAME).write_text("\n".join([",".join(COLUMNS), *lines, ""]))
    return build_page(source, folder)
