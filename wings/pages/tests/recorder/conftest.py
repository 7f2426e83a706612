"""A site that is served and recorded once for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.open_folder import open_folder
from wings.pages.exchange import Recording
from wings.pages.recorder import RecordOrder, record
from wings.pages.tests.recorder.site import WWW, Site, make_site, serving

Record = Callable[..., Recording]


@pytest.fixture(scope="session")
def open_scratch() -> Iterator[Path]:
    """A folder that the browser's user can reach, for root's pytest folders are closed to it."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def recorded(open_scratch: Path) -> tuple[Site, Recording]:
    with serving(make_site()) as site:
        order = RecordOrder(f"{WWW}/", wait_s=1, timeout_s=300, resolver_rules=site.rules)
        return site, record(order, open_scratch, lambda _line: None)
