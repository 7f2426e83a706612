"""Registry of importers: recognises what another tool recorded, reads it, and has it screened."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Recording
from wings.pages.importing.importer import FileStart, ImportedTable, Importer
from wings.pages.importing.screening import screen

MODULES = (
    "wpr",
    "mitmproxy",
    "har",
    "warc",
    "wacz",
    "mahimahi",
    "resources",
)
"""Modules beside this one, in the order in which they are asked; each declares ``IMPORTER``."""


def importers() -> tuple[Importer, ...]:
    """Return every importer."""
    return tuple(import_module(f"{__package__}.{name}").IMPORTER for name in MODULES)


def known_formats() -> str:
    """Return what can be imported, for messages."""
    *names, last = (importer.known_as for importer in importers())
    return f"{', '.join(names)}, or {last}"


def read_recording(
    path: Path, *, url: str | None = None, page: str | None = None
) -> Recording | ImportedTable:
    """Read one page of the file or folder ``path``: that which begins with ``url``, or ``page``.

    Raises:
        ConfigurationError: it is not there, of no known format, or no page can be made of it;
            every problem is named.
    """
    try:
        importer = _find_importer(path)
        if page is not None and not importer.has_pages:
            problem = f"--page: a {importer.name} has no pages by name; give --url"
            raise ConfigurationError([problem])
        options = {"page": page} if importer.has_pages else {}
        try:
            contents = importer.read(path, url=url, **options)
            return contents if isinstance(contents, ImportedTable) else screen(contents)
        except ConfigurationError as error:
            # A table's problems name their lines behind the path.
            raise ConfigurationError(
                [p if p.startswith(f"{path}:") else f"{path}: {p}" for p in error.problems]
            ) from None
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from None


def _find_importer(path: Path) -> Importer:
    if not path.is_file() and not path.is_dir():
        raise ConfigurationError([f"{path}: there is no such file; give {known_formats()}"])
    sample = FileStart(path)
    for importer in importers():
        if importer.recognises(sample):
            return importer
    raise ConfigurationError([f"{path}: not recognised; give {known_formats()}"])
