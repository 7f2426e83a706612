"""The real browser takes our fonts for fonts, whatever their size and type."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.client.chromium.browser import find_browser
from wings.pages.synthesis.filler import filler
from wings.pages.synthesis.media import make_font

pytestmark = pytest.mark.browser

SIZES = (564, 565, 566, 567, 568, 4321, 70_001)
PAGE = """<!doctype html><script>
Promise.all(%s.map(data => new FontFace("x", `url(data:%s;base64,${data})`).load()
  .then(font => font.status, error => String(error)))).then(all => {document.title = all.join(" ")})
</script>"""


@pytest.mark.parametrize("mime", ("font/woff2", "font/ttf", "application/octet-stream"))
def test_every_font_loads(mime: str, tmp_path: Path) -> None:
    fonts = [base64.b64encode(make_font(size, filler(mime, size))).decode() for size in SIZES]
    broken = base64.b64encode(filler(mime, 1000)).decode()
    (tmp_path / "page.html").write_text(PAGE % ([*fonts, broken], mime))
    flags = ["--dump-dom", "--virtual-time-budget=10000", f"--user-data-dir={tmp_path / 'profile'}"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    shown = proc.run([str(find_browser()), *flags, (tmp_path / "page.html").as_uri()])
    title = shown.stdout.partition("<title>")[2].partition("</title>")[0]
    assert title.startswith("loaded " * len(SIZES))
    assert "Error" in title


def test_a_font_cannot_be_as_small_as_one_likes() -> None:
    with pytest.raises(ValueError, match="at least 564 bytes, not 563"):
        make_font(563, b"")
