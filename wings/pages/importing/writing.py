"""Pages from imports: an archive where its bodies are there, else a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from testbed.pages.catalogue import PageFacts
from wings.pages.exchange import Recording
from wings.pages.har_export import LICENCE_RECORDED, write_archive
from wings.pages.importing.importer import ImportedTable
from wings.pages.importing.recorded_table import (
    BODIES_TABLE,
    LICENCE_TABLE,
    write_rows,
    write_table,
)
from wings.pages.redaction.redact import redact
from wings.pages.table import ResourceRow


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write: without contents, with secrets, under which title and licence."""

    title: str | None = None
    licence: str | None = None
    anonymize: bool = False
    keep_secrets: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """What was written; ``size`` is bytes of responses as far as they are known."""

    kind: Literal["archive", "table"]
    requests: int
    hosts: int
    size: int
    notes: tuple[str, ...]


def write_page(
    folder: Path, contents: Recording | ImportedTable, options: WriteOptions
) -> WrittenPage:
    """Write ``contents`` to ``folder``, which appears whole or not at all.

    Raises:
        ConfigurationError: no page can be made of it; or the folder is there, and is not to be
            replaced.
        StorageError: it cannot be written.
    """
    if isinstance(contents, ImportedTable):
        facts = PageFacts(
            title=options.title or contents.title, url=contents.url, recorded=contents.recorded,
            source=contents.source, licence=options.licence or LICENCE_TABLE, bodies=BODIES_TABLE,
            deviations=contents.notes,
        )  # fmt: skip
        write_rows(folder, facts, contents.rows, replace=options.replace)
        return _count_rows(contents.rows, contents.notes)
    recording = contents if options.keep_secrets else redact(contents)
    if options.title is not None:
        recording = dataclasses.replace(recording, title=options.title)
    if options.anonymize or any(each.body is None for each in recording.exchanges):
        licence = options.licence or LICENCE_TABLE
        table = write_table(folder, recording, licence=licence, replace=options.replace)
        return _count_rows(table.rows, (*recording.notes, *table.notes))
    licence = options.licence or LICENCE_RECORDED
    notes = write_archive(folder, recording, licence=licence, replace=options.replace)
    return WrittenPage(
        kind="archive",
        requests=sum(exchange.status > 0 for exchange in recording.exchanges),
        hosts=len({urlsplit(each.url).hostname for each in recording.exchanges if each.status}),
        size=sum((x.headers_size or 0) + x.body_size for x in recording.exchanges),
        notes=notes,
    )


def _count_rows(rows: Sequence[ResourceRow], notes: tuple[str, ...]) -> WrittenPage:
    return WrittenPage(
        kind="table",
        requests=len(rows),
        hosts=len({row.host for row in rows}),
        size=sum(row.transfer_bytes for row in rows),
        notes=notes,
    )
