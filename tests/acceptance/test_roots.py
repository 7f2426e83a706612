"""Guests on a locked root: its files and no others, and one digest in the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_MISSING, EXIT_OK
from testbed.model import CAPTURE_FILE
from testbed.results.manifest import load_manifest
from testbed.root.cache import Root, find_root
from testbed.root.spec import read_spec
from tests.acceptance.house import House, Ran, assert_ok

pytestmark = pytest.mark.guest

NAME = "debian-12"
QUICK = places.CONFIGS / "quick.toml"


TABLE = """\
id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms,protocol
0,,www.small.test,text/html,200,9000,9000,root,,0,40,http
1,0,img.small.test,image/png,200,30000,29500,url-in-main-html,5,45,30,http
"""


@pytest.fixture(scope="module")
def page(house: House) -> str:
    return house.import_table(TABLE, "small", "http://www.small.test/")


@pytest.fixture(scope="module")
def ran(house: House, page: str) -> Ran:
    return house.run(page=page, client=["graph", "chromium"], root=NAME)


@pytest.fixture(scope="module")
def root(house: House, ran: Ran) -> Root:
    assert ran.code == EXIT_OK
    root = find_root(read_spec(NAME), places.cache())
    assert root is not None
    return root


@pytest.mark.thorough
def test_pages_are_loaded_and_the_digest_stands_for_all_programs(ran: Ran, root: Root) -> None:
    for record in ran.records:
        assert_ok(record)
    parts = load_manifest(ran.folder).environment.parts
    assert parts["root"] == root.digest
    assert not [name for name in parts if name.startswith(("package.", "program.", "file."))]


def test_the_same_root_gives_the_same_packets(house: House, page: str, ran: Ran) -> None:
    again = house.run(page=page, client=["graph", "chromium"], root=NAME)
    assert load_manifest(again.folder).environment.id == load_manifest(ran.folder).environment.id
    assert {record.trial_id: record.artefacts[CAPTURE_FILE] for record in again.records} == {
        record.trial_id: record.artefacts[CAPTURE_FILE] for record in ran.records
    }


def run_in_lab(house: House, page: str, *words: str) -> tuple[int, str]:
    """Run a command in the lab of a load, on the root."""
    sets = ("--set", f"page={page}", "--set", f"root={NAME}", "--only", "tfo=true")
    return house.command("exec", str(QUICK), *sets, "--", *words)


def test_a_guest_sees_its_programs_and_no_others(house: House, page: str, root: Root) -> None:
    code, said = run_in_lab(house, page, "ls", "/usr/bin", "/usr/sbin")
    assert code == EXIT_OK, said
    theirs = {file.name for part in ("bin", "sbin") for file in (root.usr / part).iterdir()}
    assert theirs <= set(said.split())
    assert Path("/usr/bin/git").exists()
    assert "git" not in said.split()


@pytest.mark.usefixtures("root")
def test_a_program_that_the_root_has_not_is_missing(
    house: House, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run_in_lab(house, page, "git", "{url}")
    assert code == EXIT_MISSING
    assert "command 'git': trials find no such program" in capsys.readouterr().err


def test_no_compiled_file_knows_where_or_when_it_was_made(root: Root) -> None:
    heads = {file.read_bytes()[4:8] for file in root.usr.rglob("*.pyc")}
    assert heads == {b"\1\0\0\0"}  # by the source's hash, never looked at (PEP 552)


def test_the_list_says_which_are_assembled(house: House, root: Root) -> None:
    code, said = house.command("root", "list", "--json")
    assert code == EXIT_OK
    digests = {row["root"]: row["digest"] for row in json.loads(said)}
    assert digests[NAME] == root.digest
    assert "debian-13" in digests
