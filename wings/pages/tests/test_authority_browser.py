"""The real browser trusts the lab's chain by the hash of its intermediate's key, and only then."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base.proc import CommandError, run
from testbed.client.chromium.browser import find_browser
from testbed.pages.build import build_page
from tests.web import open_context
from wings.pages.har_export import write_archive
from wings.pages.tests.recorder.site import Site, serving, typed
from wings.pages.tests.recordings import make_recording

pytestmark = pytest.mark.browser


@pytest.fixture
def tls(tmp_path: Path) -> Path:
    write_archive(tmp_path / "mine", make_recording(), licence="none")
    return build_page(tmp_path / "mine", tmp_path / "cache") / "tls"


@pytest.fixture
def port(tls: Path) -> Iterator[int]:
    site = Site()
    site.put("https://www.example.com/", typed(b"<p>served</p>", "text/html"))
    with serving(site, open_context(tls, "www.example.com")):
        yield site.tls_port


def load(port: int, *flags: str) -> str:
    """The document that the browser shows for the page's host."""
    with tempfile.TemporaryDirectory() as profile:
        argv = [str(find_browser()), "--headless", "--no-sandbox", "--disable-gpu",
                f"--user-data-dir={profile}", f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
                *flags, "--dump-dom", "https://www.example.com/"]  # fmt: skip
        return run(argv, timeout_s=300).stdout


def test_it_is_trusted_by_the_hash(tls: Path, port: int) -> None:
    spki = (tls / "authority.spki").read_text()
    assert "served" in load(port, f"--ignore-certificate-errors-spki-list={spki}")


def test_it_is_not_trusted_without(port: int) -> None:
    with pytest.raises(CommandError, match="ERR_CERT_AUTHORITY_INVALID"):
        load(port)
