"""PDF of a page, printed by a headless Chromium of this machine, or FIRSTFLIGHT_BROWSER's."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")


def print_page(page: Path, pdf: Path) -> None:
    """Print the HTML file ``page`` to ``pdf``.

    Raises:
        MissingError: there is no Chromium, or it wrote nothing.
        CommandError: it failed.
    """
    named = os.environ.get("FIRSTFLIGHT_BROWSER")
    browser = next(filter(shutil.which, (named,) if named else BROWSERS), None)
    if browser is None:
        raise MissingError(
            f"no Chromium to print {pdf.name} with: install {BROWSERS[0]}, or let "
            "FIRSTFLIGHT_BROWSER name one"
        )
    with tempfile.TemporaryDirectory(prefix="print-") as profile:
        proc.run(
            # Without its sandbox, which root does not get: the page is our own and has no scripts.
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--no-pdf-header-footer", f"--print-to-pdf={pdf.absolute()}",
             page.absolute().as_uri()],
            timeout_s=120,
        )  # fmt: skip
    if not pdf.is_file():
        raise MissingError(f"{browser} wrote no {pdf.name}; the page is {page}")
