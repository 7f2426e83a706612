"""What an import tells of the page that it wrote."""

from __future__ import annotations

import json
from pathlib import Path

from wings.pages.importing.notes import Notes
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.tests.importing.site import SITE, browsertime


def test_what_changed_on_writing_is_told_as_well(tmp_path: Path) -> None:
    document = browsertime(bodies=True)
    assert SITE[3].protocol == "http/1.1"
    document["log"]["entries"][3]["response"]["headersSize"] = 20
    (tmp_path / "x").write_text(json.dumps(document))
    written = write_page(tmp_path / "page", read_recording(tmp_path / "x"), WriteOptions())
    assert any("grow by" in note for note in written.notes)


def test_notes_of_several_are_joined_as_if_told_in_turn() -> None:
    told, first, second = Notes(), Notes(), Notes()
    for number, where in enumerate("abcdea"):
        told.add("Left out", where)
        (first if number < 3 else second).add("Left out", where)
    second.add("Repaired", "f")
    told.add("Repaired", "f")
    joined = Notes()
    joined.join(first)
    joined.join(second)
    assert joined.sentences() == told.sentences()
    assert joined.sentences() == ("Left out: 6 (a, b, c, ...).", "Repaired: 1 (f).")
