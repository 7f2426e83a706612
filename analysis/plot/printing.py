"""Printing of a page of ours to PDF, by the headless Chromium that loads pages, too."""

from __future__ import annotations

import tempfile
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError

CHROMIUM = "chromium-headless-shell"


def print_page(page: Path, pdf: Path, browser: str = CHROMIUM) -> None:
    """Print the HTML file ``page`` to ``pdf`` by ``browser``, a headless Chromium.

    Raises:
        MissingError: there is no headless Chromium.
        CommandError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="print-") as profile:
        proc.run(
            # Without its sandbox, which root does not get: the page is our own and has no scripts.
            [browser, "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--no-pdf-header-footer", f"--print-to-pdf={pdf.absolute()}",
             page.absolute().as_uri()],
            timeout_s=120,
        )  # fmt: skip
    if not pdf.is_file():
        raise MissingError(f"{browser} wrote no {pdf.name}; what it was to print is in {page}")
