"""Provenance of results for people: the manifest as titled lists, and the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analysis.records.cells import facts_of
from analysis.words import MISSING, clean, count

Section = tuple[str, list[tuple[str, str]]]

MAX_ROWS = 400
MAX_LISTED = 8
TITLES = {
    ("environment",): "Environment",
    ("environment", "parts"): "Kernel, programs and code (decide the environment id)",
    ("environment", "pages"): "Pages, by digest (decide the environment id)",
    ("environment", "facts"): "Machine and work tree (reported, not part of the id)",
    ("experiment",): "Experiment as asked",
    (): "The run",
}
ENTRY = """\
@software{firstflight,
  author = {{The Firstflight authors}},
  title = {Firstflight: a reproducible page-load testbed},
  version = {0.1.0}"""
"""Of BibTeX, without its end."""


def manifest_sections(manifest: Mapping[str, Any]) -> list[Section]:
    """Return everything in the manifest as titled lists of (name, value).

    Known parts come first and under their names, unknown ones after them under their own.
    """
    rows: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    _collect((), manifest, rows)
    order = {path: place for place, path in enumerate(TITLES)}
    paths = sorted(rows, key=lambda path: (order.get(path, len(order)), path))
    return [(TITLES.get(path, clean(": ".join(path))), rows[path][:MAX_ROWS]) for path in paths]


def command_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the command line that made the results, if the manifest holds its arguments."""
    arguments = manifest.get("arguments")
    if not isinstance(arguments, (list, tuple)):
        return None
    return clean(shlex.join(["./run.sh", *map(str, arguments)]))


def origins_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each way in which records are not of one run of the whole plan."""
    shard, stored, merged = (manifest.get(name) for name in ("shard", "stored", "merged"))
    said = []
    if isinstance(shard, Mapping):
        said.append(f"This is part {shard.get('number')} of {shard.get('of')} of the plan.")
    if isinstance(merged, (list, tuple)) and merged:
        overlaps = sum(int(each.get("overlap", 0)) for each in merged if isinstance(each, Mapping))
        twice = f"; {count(overlaps, 'record')} of them in more than one, equal to the bit"
        said.append(f"Put together from {count(len(merged), 'folder')}{twice if overlaps else ''}.")
    if isinstance(stored, Mapping):
        taken = count(int(stored.get("trials", 0)), "trial is", "trials are")
        again = int(stored.get("again", 0))
        ran = f", {again} of them run again: equal to the bit" if again else ""
        said.append(f"{taken} from a store of results{ran}.")
    return said


def revision_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the revision of the code that made the results, if the manifest says."""
    revision = facts_of(manifest).get("git_revision")
    return clean(revision) if revision else None


def _collect(
    path: tuple[str, ...], value: Mapping[str, Any], rows: dict[tuple[str, ...], Any]
) -> None:
    for name in sorted(value, key=str):
        inner = value[name]
        if isinstance(inner, Mapping):
            _collect((*path, str(name)), inner, rows)
        else:
            rows.setdefault(path, []).append((clean(str(name)), _text(inner)))


def _text(value: object) -> str:
    if value is None:
        return MISSING
    if not isinstance(value, (list, tuple)):
        return clean(str(value))
    if len(value) > MAX_LISTED or any(isinstance(item, (Mapping, list, tuple)) for item in value):
        return count(len(value), "entry", "entries")
    return ", ".join(clean(str(item)) for item in value)


def cite_tool(revision: str | None) -> str:
    """Return the BibTeX entry of Firstflight itself, at a ``revision``."""
    return ENTRY + (f",\n  note = {{Revision {revision}}}" if revision else "") + "\n}"
