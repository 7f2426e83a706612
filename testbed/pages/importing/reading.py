"""Reads any recording that we know into our own types: detect, read, screen."""

from __future__ import annotations

from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.pages.exchange import Recording
from testbed.pages.importing.detection import detect_format
from testbed.pages.importing.har import read_har
from testbed.pages.importing.mahimahi import read_mahimahi
from testbed.pages.importing.resources import Table, read_resources
from testbed.pages.importing.screening import screen
from testbed.pages.importing.wacz import read_wacz
from testbed.pages.importing.warc import read_warc


def read_recording(
    path: Path, *, url: str | None = None, page: str | None = None
) -> Recording | Table:
    """One page of the file or folder ``path``: that which begins with ``url``, or the id ``page``.

    Raises:
        ConfigurationError: nothing can be made of it; every problem is named.
    """
    format_ = detect_format(path)
    if page is not None and format_ not in ("har", "wacz"):
        raise ConfigurationError([f"--page: a {format_} has no pages by name; give --url"])
    if format_ == "resources":
        return read_resources(path, url=url)
    if format_ == "har":
        reading = read_har(path, url=url, page=page)
    elif format_ == "warc":
        reading = read_warc(path, url=url)
    elif format_ == "wacz":
        reading = read_wacz(path, url=url, page=page)
    else:
        reading = read_mahimahi(path, url=url)
    try:
        return screen(reading)
    except ConfigurationError as error:
        raise ConfigurationError([f"{path}: {problem}" for problem in error.problems]) from None
