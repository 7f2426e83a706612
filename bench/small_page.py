"""Small page of one object, built like any other."""

from __future__ import annotations

from pathlib import Path

from testbed.pages.build import build_page
from testbed.pages.catalogue import TABLE_NAME
from testbed.pages.facts import FACTS_NAME
from testbed.pages.table.resources import COLUMNS

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
    """Write the page's two files below ``folder``, build it there, and return the built folder."""
    source = folder / "small"
    source.mkdir()
    (source / FACTS_NAME).write_text(FACTS)
    row = {"id": "0", "host": HOST, "mime": "text/html", "status": "200", "how": "root"}
    row["transfer_bytes"] = str(RESPONSE_BYTES)
    cells = ",".join(row.get(column, "") for column in COLUMNS)
    (source / TABLE_NAME).write_text(f"{','.join(COLUMNS)}\n{cells}\n")
    return build_page(source, folder)
