"""A site that is served and recorded once for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from testbed.pages.exchange import Recording
from testbed.pages.recorder import RecordOrder, record
from tests.pages.recorder.site import WWW, Site, make_site, serving

Record = Callable[..., Recording]


@pytest.fixture(scope="session")
def open_scratch() -> Iterator[Path]:
    """A folder that the browser's user can reach, which pytest's own are not for root."""
    folder = Path(mkdtemp(prefix="firstflight-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def recorded(open_scratch: Path) -> tuple[Site, Recording]:
    with serving(make_site()) as site:
        order = RecordOrder(f"{WWW}/", wait_s=1, timeout_s=300, resolver_rules=site.rules)
        return site, record(order, open_scratch, lambda _line: None)
