"""The real browser decodes padded bodies, over TLS, where alone it asks for br and zstd."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from testbed.base.proc import started
from testbed.client.chromium.browser import find_browser
from testbed.pages.authority import SPKI_NAME
from tests.kernel.host_state import await_that
from tests.web import make_context
from wings.pages.coding import encode
from wings.pages.tests.recorder.site import Site, serving, typed
from wings.pages.tests.replay import open_tab

pytestmark = pytest.mark.browser

HOST = "padded.test"
ROOT = f"https://{HOST}/"
CODINGS = ("gzip", "deflate", "br", "zstd")
SIZES = (300, 3000, 80_000)


def script(name: str) -> bytes:
    return f'seen.push("{name}");/* {"word " * 200}*/'.encode()


def page(names: list[str]) -> bytes:
    scripts = "".join(f'<script src="/{name}"></script>' for name in names)
    report = 'onload=function(){fetch("/seen?"+seen)}'
    return f"<!doctype html><script>seen=[];{report}</script>{scripts}".encode()


def test_the_browser_runs_every_padded_script(tmp_path: Path) -> None:
    site = Site()
    names = [f"{coding}-{size}.js" for coding in CODINGS for size in SIZES]
    for name in names:
        coding, size = name.removesuffix(".js").split("-")
        body = encode(script(name), coding, int(size))
        assert len(body) == int(size)
        site.put(f"{ROOT}{name}", typed(body, "text/javascript", ("Content-Encoding", coding)))
    document = encode(page(names), "zstd", 5000)
    site.put(ROOT, typed(document, "text/html", ("Content-Encoding", "zstd")))
    context = make_context(tmp_path, HOST)
    pin = (tmp_path / SPKI_NAME).read_text()
    with serving(site, context), tempfile.TemporaryDirectory() as profile:
        argv = [
            str(find_browser()), "--headless", "--no-sandbox", "--disable-gpu",
            "--remote-debugging-port=0", f"--user-data-dir={profile}",
            f"--ignore-certificate-errors-spki-list={pin}",
            f"--host-resolver-rules=MAP * 127.0.0.1:{site.tls_port}",
        ]  # fmt: skip
        with started(argv):
            open_tab(Path(profile) / "DevToolsActivePort", ROOT)
            await_that(lambda: any("/seen?" in url for _, url in site.asked))
    assert ("GET", f"{ROOT}seen?{','.join(names)}") in site.asked
    assert site.offered == {"gzip, deflate, br, zstd"}
