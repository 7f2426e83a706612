"""Builds of pages that are resource tables: an archive with a body of each row's size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.pages.build import Tell, cached_build
from testbed.pages.catalogue import FACTS_NAME, TABLE_NAME, PageFacts, read_facts
from wings.pages.exchange import How, PageExchange
from wings.pages.har_export import TABLE_CREATOR, PlacedExchange, make_har, write_content
from wings.pages.synthesis.bodies import Synthesis, synthesise
from wings.pages.synthesis.discovery import Discovery, Role
from wings.pages.synthesis.filler import Body
from wings.pages.table import PROTOCOLS, ResourceRow, read_table

_HOW: dict[Role, How] = {"document": "parser", "style": "css", "script": "script"}


def build_table(folder: Path, cache: Path, _tell: Tell) -> Path:
    """Build the page in ``folder``, a resource table, as ``testbed.pages.build.build_page``."""
    facts = read_facts(folder / FACTS_NAME)
    path, protocol = _find_table(folder, facts)
    rows = tuple(replace(row, protocol=protocol or row.protocol) for row in read_table(path))

    def fill(target: Path) -> None:
        page = synthesise(folder.name, facts.title, rows)
        placed = _place_exchanges(page)
        more: dict[str, Any] = {"_made_up": True} if facts.made_up else {}
        more |= {} if facts.device is None else {"_device": facts.device.plain()}
        har = make_har(folder.name, facts.title, facts.recorded, placed, creator=TABLE_CREATOR,
                       more=more)  # fmt: skip
        (target / FACTS_NAME).write_bytes((folder / FACTS_NAME).read_bytes())
        write_content(target, har, (body.data for body in page.bodies))

    return cached_build(folder, cache, (folder / FACTS_NAME, path), __name__, fill)


def _find_table(folder: Path, facts: PageFacts) -> tuple[Path, str | None]:
    """Return the resource table of a page, and what all its rows speak if that is another page's.

    Raises:
        ConfigurationError: its ``[table]`` names no such page, or no protocol.
    """
    if facts.table is None:
        return folder / TABLE_NAME, None
    asked, path = facts.table, folder / FACTS_NAME
    base, protocol = asked.get("like"), asked.get("protocol")
    unknown = [key for key in asked if key not in ("like", "protocol")]
    problems = [f"{path}: table.{key}: unknown; it has like and protocol" for key in unknown]
    if not isinstance(base, str) or not (folder.parent / base / TABLE_NAME).is_file():
        problems.append(f"{path}: table.like: there is no page {base!r} with a {TABLE_NAME}")
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        problems.append(f"{path}: table.protocol is {protocol!r}, expected one of {known}")
    if problems:
        raise ConfigurationError(problems)
    return folder.parent / str(base) / TABLE_NAME, str(protocol)


def _place_exchanges(page: Synthesis) -> Iterator[PlacedExchange]:
    discovery = page.discovery
    for row, body in zip(discovery.rows, page.bodies, strict=True):
        yield PlacedExchange(
            exchange=_exchange(discovery, row, body),
            id=row.id,
            parent=None if row.parent is None else discovery.url(discovery.by_id[row.parent]),
            carrier=discovery.carrier_url(row),
            gap_ms=row.gap_ms,
            depth=discovery.depth(row),
            transfer_bytes=row.transfer_bytes,
            more={"_recorded_how": row.how, "_recorded_host": row.host},
        )


def _exchange(discovery: Discovery, row: ResourceRow, body: Body) -> PageExchange:
    target = discovery.redirect_target(row)
    headers = (
        ("Content-Type", row.mime),
        ("Content-Encoding", "gzip" if body.gzipped else ""),
        ("Location", "" if target is None else discovery.url(target)),
        # JSON is fetched in CORS mode, which needs leave.
        ("Access-Control-Allow-Origin", "*" if discovery.role(row) == "data" else ""),
    )
    return PageExchange(
        url=discovery.url(row), status=row.status,
        protocol="h2" if row.protocol == "h2" else "http/1.1",
        # Over h2 no head has an exact size.
        headers=tuple((name, value) for name, value in headers if value),
        headers_size=None if row.protocol == "h2" else row.transfer_bytes - len(body.data),
        body=body.data, body_size=len(body.data), decoded_size=body.decoded_size, mime=row.mime,
        how=_how(discovery, row), start_ms=row.start_ms, dur_ms=row.dur_ms,
    )  # fmt: skip


def _how(discovery: Discovery, row: ResourceRow) -> How:
    if row.how == "root":
        return "root"
    if row.how == "redirect":
        return "redirect"
    reference = discovery.find(row)
    carrier = discovery.role(discovery.by_id[reference.carrier])
    if reference.after is not None:
        return "script"
    if discovery.role(row) == "document" == carrier:
        return "frame"
    return _HOW[carrier]
