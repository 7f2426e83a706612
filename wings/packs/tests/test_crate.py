"""The metadata is what the RO-Crate community's validator takes, and names no person."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.base import proc
from wings.packs.contents import METADATA_FILE
from wings.packs.packing import pack_results, unpack_results
from wings.packs.tests.results import copy_lanes, copy_pages, copy_results

CHECK = Path(__file__).parent / "validate_crate.py"
LEFT_OUT = {
    # Who measured is not part of a result.
    "The Action SHOULD have an agent that is a Person or Organization",
    "The Root Data Entity SHOULD have a link to a Contextual Entity representing the `author` of"
    " the RO-Crate",
    "The `publisher` property of a `Root Data Entity` SHOULD be an `Organization`",
    # The program is a work tree of a revision, without an address of its own.
    "The Application SHOULD have a url",
    "The SoftwareApplication id SHOULD be an absolute URI",
    # No result depends on when its run ended.
    "The Action SHOULD have an endTime in ISO 8601 format",
}
"""The recommendations that a pack does not follow; of the requirements it meets all."""


@pytest.mark.nightly(but="^True$")
@pytest.mark.parametrize("lanes", [False, True])
def test_the_validator_of_ro_crate_finds_nothing_that_was_not_left_out_on_purpose(
    tmp_path: Path, lanes: bool
) -> None:
    tools = os.environ.get("FIRSTFLIGHT_ARTIFACT")
    if tools is None:
        pytest.skip("its Python environment was not set up: run `make test`")
    make = copy_lanes if lanes else copy_results
    make(tmp_path / "results")
    (tmp_path / "results" / "two words & more.txt").write_text("a note\n")
    copy_pages(tmp_path / "pages")
    file = tmp_path / "pack.zip"
    pack_results(tmp_path / "results", file, tmp_path / "pages", tmp_path / "cache")
    done = proc.run(
        (f"{tools}/bin/python", str(CHECK), str(file)),
        env={"PATH": os.defpath, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        cwd=tmp_path,
        timeout_s=600,
    )
    found = {line.partition(": ")[2]: line for line in done.stdout.splitlines()}
    assert set(found) == LEFT_OUT, done.stdout
    assert all(line.startswith("RECOMMENDED: ") for line in found.values())


@pytest.mark.parametrize(
    ("given", "address"),
    [(None, "#license"), ("CC-BY-4.0", "https://spdx.org/licenses/CC-BY-4.0"),
     ("MIT", "https://spdx.org/licenses/MIT"), ("https://example.org/l", "https://example.org/l")],
)  # fmt: skip
def test_the_licence_is_the_one_given(tmp_path: Path, given: str | None, address: str) -> None:
    copy_results(tmp_path / "results")
    file = tmp_path / "pack.zip"
    pack_results(tmp_path / "results", file, tmp_path / "pages", tmp_path / "cache", license_=given)
    unpack_results(file, tmp_path / "new")
    graph = json.loads((tmp_path / "new" / METADATA_FILE).read_text())["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    assert len(entities) == len(graph)
    assert entities["./"]["license"] == {"@id": address}
    assert address in entities
