"""Folder of a new page, which a user named: with its facts, and whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.whole_folder import OccupiedError, new_folder
from testbed.pages.catalogue import FACTS_NAME, PageFacts, format_facts


@contextmanager
def new_page(folder: Path, facts: PageFacts, *, replace: bool = False) -> Iterator[Path]:
    """Yield ``new_folder`` for a page that a user named, with its ``page.toml`` in it.

    Raises:
        ConfigurationError: the folder is there, and ``replace`` is not given.
        StorageError: it cannot be written; what was there before is intact.
    """
    try:
        with new_folder(folder, replace=replace) as scratch:
            (scratch / FACTS_NAME).write_text(format_facts(facts), encoding="utf-8")
            yield scratch
    except OccupiedError:
        raise ConfigurationError(
            [f"{folder}: there is a page of this name; choose another, or give --replace"]
        ) from None
    except OSError as error:
        raise StorageError(
            f"cannot write the page {folder}: {error.strerror or error}; what was there before is "
            "intact; free some space or choose another place"
        ) from None
