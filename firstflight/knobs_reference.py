"""Reference of the knobs, ``docs/knobs.md``, from their declarations in the model."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.base.places import ROOT
from testbed.experiment.knobs import FileKnob, explain, paths

KNOBS_REFERENCE = ROOT / "docs" / "knobs.md"
_INTRODUCTION = """\
# Knobs

This page lists every knob that an experiment may set. It is written by `make reference` from the
declarations in `testbed/model/`; `./run.sh knobs` prints the same.

An experiment file sets a knob in its table (`[link]`, `[tcp]`, or at the top, before any table),
`--set NAME=VALUE` sets it on the command line, and a list in `[sweep]` loads every condition with
each of its values; a knob marked * holds for a whole experiment and cannot be swept.
*Since* is the first schema of results that has the knob: older results had its default.
"""


def render_knobs() -> str:
    """Return the whole file."""
    tables: dict[tuple[str, ...], list[FileKnob]] = {}
    for knob in paths().values():
        tables.setdefault(knob.table, []).append(knob)
    parts = [_INTRODUCTION]
    for table, knobs in tables.items():
        heading = f"[{'.'.join(table)}]" if table else "At the top of the file"
        parts.append(f"## {heading}\n\n" + "\n".join(_rows(knobs)) + "\n")
    return "\n".join(parts)


def _rows(knobs: list[FileKnob]) -> Iterator[str]:
    yield "| knob | meaning | allowed | default | unit | since |"
    yield "|---|---|---|---|---|---|"
    for knob in knobs:
        about = explain(knob)
        name = f"`{knob.declared.name}`{'' if about['swept'] else ' *'}"
        default = f"`{about['default']}`" if about["default"] else ""
        cells = (name, about["meaning"], about["allowed"], default, about["unit"], about["since"])
        yield f"| {' | '.join(map(str, cells))} |"
