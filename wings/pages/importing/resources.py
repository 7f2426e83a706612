"""Resource table importer: our own ``resources.csv``, and lists of page facts with its names.

The columns of a list that are used: ``url_host mime transfer_bytes body_bytes parent id``, and
where they are there ``start_ms dur_ms parent_how kind status gap_after_parent_end_ms``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.importing.importer import ImportedTable, Importer
from wings.pages.importing.notes import Notes
from wings.pages.importing.overflow import relieve_document
from wings.pages.limits import MIB, mib
from wings.pages.table import (
    COLUMNS,
    HEADER_BYTES,
    HOW,
    MIN_HEADER_BYTES,
    REDIRECTS,
    STATUSES,
    parse_table,
)

FACT_COLUMNS = frozenset({"url_host", "mime", "transfer_bytes", "body_bytes", "parent", "id"})
_TABLE_BYTES = 16 * MIB
_STATUSES = {"no content": 204, "moved permanently": 301, "moved temporarily": 302, "found": 302,
             "object moved": 302, "see other": 303, "temporary redirect": 307,
             "permanent redirect": 308}  # fmt: skip
_HOW = {"parser": "url-in-html", "script": "url-in-js", "css": "url-in-css",
        "css/layout": "url-in-css", "other": "url-in-other"}  # fmt: skip
_DROPPED = ("cached-lazyvideo", "net-after-onload")
_LOCAL = {"local": "local.example"}


def read_resources(path: Path, *, url: str | None = None) -> ImportedTable:
    """Read a table.

    Raises:
        ConfigurationError: it is wrong; every problem with its line.
        OSError: it cannot be read.
    """
    if path.stat().st_size > _TABLE_BYTES:
        raise ConfigurationError([f"more than {mib(_TABLE_BYTES)}; split it by page"])
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError([f"not UTF-8 at byte {error.start}"]) from None
    notes = Notes()
    if is_own(text):
        rows = parse_table(text, str(path))
    else:
        # Our own parser has the last word: what it takes can be built.
        rows = parse_table(format_rows(parse_facts(text, str(path), notes)), str(path))
        relief = relieve_document(rows)
        rows = tuple(relief.rows)
        for what, number in (("requests moved to a script", relief.moved),
                             ("bytes added", relief.added_bytes)):  # fmt: skip
            if number:
                notes.add(f"Tables whose document is too small, {what}", str(number))
    scheme = rows[0].scheme
    return ImportedTable(
        title=rows[0].host, url=url or f"{scheme}://{rows[0].host}/",
        recorded=date.fromtimestamp(path.stat().st_mtime),
        source=f"The resource table {path.name}.", rows=rows, notes=notes.sentences(),
    )  # fmt: skip


def is_own(text: str) -> bool:
    """Return whether the text begins with our columns."""
    return text.partition("\n")[0].strip().split(",")[:3] == list(COLUMNS[:3])


def is_facts(text: str) -> bool:
    """Return whether the text begins with the columns of a list of page facts."""
    return set(text.partition("\n")[0].strip().split(",")) >= FACT_COLUMNS


def parse_facts(text: str, where: str, notes: Notes) -> list[dict[str, str]]:
    """Parse a list of facts into the columns of our tables; ``where`` names it in messages.

    Raises:
        ConfigurationError: it has no rows, or not a row's cells.
    """
    try:
        rows = list(csv.DictReader(text.splitlines()))
    except csv.Error as error:
        raise ConfigurationError([f"{where}: no CSV: {error}"]) from None
    odd = [line for line, row in enumerate(rows, 2) if None in row or None in row.values()]
    problems = [f"{where}:{line}: not as many cells as columns" for line in odd]
    if problems or not rows:
        raise ConfigurationError(problems or [f"{where}: there are no rows"])
    load_rows = []
    for row in rows:
        if row.get("kind", "") in _DROPPED:
            notes.add("Rows left out, not of the load itself", f"{row['id']}, {row['kind']}")
        else:
            load_rows.append(row)
    redirected = {row["parent"] for row in load_rows if row.get("parent_how") == "redirect"}
    if any(_lacks_head(row) for row in load_rows):
        notes.add(f"Lists that count no heads, {HEADER_BYTES} bytes added to each transfer")
        for row in load_rows:
            if row["transfer_bytes"].isdecimal():
                row["transfer_bytes"] = str(int(row["transfer_bytes"][:15]) + HEADER_BYTES)
    return [_row(row, index == 0, redirected, notes) for index, row in enumerate(load_rows)]


def _lacks_head(cells: Mapping[str, str]) -> bool:
    """Return whether this can be the size of a body only."""
    transfer = cells["transfer_bytes"]
    short = transfer.isdecimal() and int(transfer[:15]) < MIN_HEADER_BYTES
    return short or (transfer == cells["body_bytes"] != "")


def _row(
    cells: Mapping[str, str], is_first: bool, redirected: set[str], notes: Notes
) -> dict[str, str]:
    status = _status(cells.get("status", ""), cells["id"] in redirected, cells["id"], notes)
    transfer = cells["transfer_bytes"]
    if status == 204 and transfer.isdecimal() and int(transfer[:15]) > HEADER_BYTES:
        notes.add("Bodies left out of responses that have none", cells["id"])
        transfer = str(HEADER_BYTES)
    discovery = cells.get("parent_how") or cells.get("initiator_type") or "time-inferred"
    how = _HOW.get(discovery, discovery)
    if how not in HOW:
        notes.add("Kinds of discovery that are not known, taken as inferred", how)
        how = "time-inferred"
    return {
        "id": cells["id"],
        "parent": "" if is_first else cells["parent"],
        "host": _LOCAL.get(cells["url_host"], cells["url_host"]).lower(),
        "mime": cells["mime"].replace("(none)", "").partition(";")[0].strip().lower(),
        "status": str(status), "transfer_bytes": transfer, "body_bytes": cells["body_bytes"],
        "how": "root" if is_first else how, "gap_ms": cells.get("gap_after_parent_end_ms") or "",
        "start_ms": cells.get("start_ms") or "", "dur_ms": cells.get("dur_ms") or "",
    }  # fmt: skip


def _status(text: str, leads: bool, row: str, notes: Notes) -> int:
    """Return the status of a reason phrase or number; a redirect to nowhere becomes 200."""
    plain = text.strip().lower()
    status = int(plain) if plain.isdecimal() and len(plain) == 3 else _STATUSES.get(plain, 200)
    if status not in STATUSES or (status in REDIRECTS and not leads):
        notes.add("Statuses sent as 200", f"{row}: {text}")
        return 200
    return status


def format_rows(rows: list[dict[str, str]]) -> str:
    """Return the text of a table, which ``parse_table`` checks."""
    out = [",".join(COLUMNS)]
    for row in rows:
        # A cell with a comma or a quote would be another table's; no sound cell has one.
        cells = [row.get(column, "").replace(",", "?").replace('"', "?") for column in COLUMNS]
        out.append(",".join(" ".join(cell.split()) for cell in cells))
    return "\n".join(out) + "\n"


IMPORTER = Importer(
    "resources", "a resource table (CSV)",
    lambda sample: is_own(sample.text) or is_facts(sample.text), read_resources,
)  # fmt: skip
