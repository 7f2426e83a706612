"""Builds the archive of a page in the cache, once for each state of its inputs and of this code.

``python -m testbed.page.build [NAME...]`` builds pages (all by default) and prints where they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import StorageError
from testbed.page.archive import HAR_NAME
from testbed.page.catalogue import find_page, list_pages
from testbed.page.facts import read_facts
from testbed.page.har import body_name, make_har
from testbed.page.synthesis import synthesise
from testbed.page.table import read_table

FACTS_NAME = "page.toml"
TABLE_NAME = "resources.csv"


def build_page(folder: Path, cache: Path) -> Path:
    """Build the page in ``folder`` below ``cache`` unless it is there; return where it is.

    The folder appears whole or not at all, also when two processes build it at once.

    Raises:
        ConfigurationError: the page's files are wrong; every problem is named.
        StorageError: the cache cannot be written.
    """
    facts = read_facts(folder / FACTS_NAME)
    rows = read_table(folder / TABLE_NAME)
    target = cache / f"{folder.name}-{_inputs_digest(folder)[:16]}"
    if target.is_dir():
        return target
    page = synthesise(folder.name, facts.title, rows)
    har = json.dumps(make_har(folder.name, facts.title, facts.recorded, page), indent=1)
    bodies = {name: x.body.data for x in page.exchanges if (name := body_name(x.body.data))}
    try:
        _write(target, folder / FACTS_NAME, har + "\n", bodies)
    except OSError as error:
        raise StorageError(
            f"cannot write the page {folder.name} to {cache}: {error}; "
            "free some space or choose another cache with XDG_CACHE_HOME"
        ) from None
    return target


def _write(target: Path, facts: Path, har: str, bodies: dict[str, bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        scratch.chmod(0o755)
        (scratch / "bodies").mkdir()
        shutil.copyfile(facts, scratch / FACTS_NAME)
        (scratch / HAR_NAME).write_text(har, encoding="utf-8")
        for name, data in bodies.items():
            (scratch / name).write_bytes(data)
        try:
            scratch.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was first, with the same bytes
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _inputs_digest(folder: Path) -> str:
    """SHA-256 over the page's files and the code that turns them into bodies."""
    files = [folder / FACTS_NAME, folder / TABLE_NAME, *sorted(Path(__file__).parent.glob("*.py"))]
    state = hashlib.sha256(folder.name.encode())
    for file in files:
        state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


def main(argv: Sequence[str] | None = None) -> None:
    """Build the named pages."""
    parser = argparse.ArgumentParser(description="Build pages for development.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every page")
    parser.add_argument("--pages", type=Path, default=Path("pages"))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "pages")
    arguments = parser.parse_args(argv)
    folders = list_pages(arguments.pages)
    if arguments.names:
        folders = tuple(find_page(arguments.pages, name) for name in arguments.names)
    for folder in folders:
        print(build_page(folder, arguments.cache))


if __name__ == "__main__":
    main()
