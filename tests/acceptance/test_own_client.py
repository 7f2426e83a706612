"""A client of one's own, and a command in the lab: on the virtual kernel, proven by capture."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.model import PageLoad, Record
from testbed.results.folder import read_records
from testbed.results.manifest import load_manifest
from tests.acceptance.house import House, assert_bad, assert_ok
from tests.measured import executed_of, load_of

pytestmark = pytest.mark.guest

EXAMPLE = places.ROOT / "docs" / "own-client" / "experiment.toml"
QUICK = places.ROOT / "configs" / "quick.toml"
MINE = ("--only", "client=command,rtt_ms=20")


@pytest.fixture(autouse=True)
def pages(house: House) -> None:
    house.take("wikipedia")


def perform(house: House, results: Path, *words: str) -> tuple[int, str, Record]:
    """Exit code, what was printed, and the only record of a ``run`` or ``exec``."""
    at = words.index("--") if "--" in words else len(words)
    code, said = house.command(*words[:at], "-o", str(results), *words[at:])
    (record,) = read_records(results)
    return code, said, record


def execute(
    house: House, results: Path, *words: str, tfo: str = "false"
) -> tuple[int, str, Record]:
    """The same of ``exec`` in the lab of the quick experiment."""
    return perform(house, results, "exec", str(QUICK), "--only", f"tfo={tfo}", *words)


def test_the_example_is_proven_in_both_arms(house: House, tmp_path: Path) -> None:
    results = tmp_path / "results"
    code, said = house.command("run", str(EXAMPLE), *MINE, "-o", str(results))
    assert code == EXIT_OK, said
    records = read_records(results)
    assert len(records) == 2
    for record in records:
        assert_ok(record)
        assert (
            record.measured_as(PageLoad) is not None
            and record.proof is not None
            and record.replay is not None
        )
        assert record.replay.exact == len(load_of(record).requests)
        assert (record.proof.syns_with_payload > 0) == record.trial.linked.tcp.tfo
    parts = load_manifest(results).environment.parts
    assert "file.{folder}/load.py" in parts


def test_equal_seeds_are_equal_loads(house: House, tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        words = ("run", str(EXAMPLE), "--only", "client=command,rtt_ms=20,tfo=true")
        code, _, record = perform(house, tmp_path / name, *words)
        assert code == EXIT_OK
        found.append((record.artefacts["client.pcap"], record.environment, load_of(record)))
    assert found[0] == found[1]


def test_a_client_that_names_no_request_is_judged_by_the_server(
    house: House, tmp_path: Path
) -> None:
    command = "curl -s -o /dev/null --cacert {ca} -w plt_s=%{time_total} {url}"
    words = ("run", str(QUICK), "--only", "tfo=false", "--set", f"command={json.dumps(command)}",
             "--client", "command")  # fmt: skip
    code, _, record = perform(house, tmp_path / "strict", *words)
    assert code == EXIT_INCOMPLETE
    assert_bad(record, "28 requests of the recording not made", "failed")
    _, _, record = perform(house, tmp_path / "loose", *words, "--set", "allow_misses=true")
    assert_ok(record)
    assert len(load_of(record).missing) == 28


def test_a_load_time_longer_than_the_program_ran_is_refused(house: House, tmp_path: Path) -> None:
    """Also one that the program could have waited before the load began."""
    (tmp_path / "own").mkdir()
    script = tmp_path / "own" / "client"
    script.write_text('#!/bin/sh\ncurl -s -o /dev/null "$1"\necho plt_ms=5000\n')
    script.chmod(0o755)
    words = ("run", str(QUICK), "--only", "tfo=false", "--client", "command",
             "--set", f"command_folder={tmp_path / 'own'}",
             "--set", 'command="{folder}/client {url}"', "--set", "allow_misses=true")  # fmt: skip
    code, _, record = perform(house, tmp_path / "results", *words)
    assert (code, record.outcome) == (EXIT_INCOMPLETE, "failed")
    ran = re.search(r"plt_ms is 5000, and it ran for ([\d.]+) ms", str(record.reason))
    assert ran is not None and 100 < float(ran[1]) < 2000


def test_output_that_is_none_of_the_contract_is_a_failure_with_its_reason(
    house: House, tmp_path: Path
) -> None:
    words = ("run", str(QUICK), "--only", "tfo=false", "--client", "command")
    results = tmp_path / "results"
    code, _, record = perform(house, results, *words, "--set", 'command="echo loaded"')
    assert code == EXIT_INCOMPLETE
    assert_bad(record, "line 1 of its standard output, 'loaded': not plt_ms=", "failed")


def test_one_command_in_the_lab_of_a_config(house: House, tmp_path: Path) -> None:
    results = tmp_path / "results"
    curl = ("curl", "-s", "-o", "{out}/page.html", "-w", "%{http_code}", "{url}")
    code, said, record = execute(house, results, "--", *curl, tfo="true")
    assert (code, said) == (EXIT_OK, "200")
    assert_ok(record)
    assert record.proof is not None
    assert (executed_of(record).exit_status, executed_of(record).output_bytes) == (0, 3)
    assert executed_of(record).duration_ms > 100  # a round trip
    assert record.proof.connections == 1
    assert {"client.pcap", "command.out", "command.err"} <= record.artefacts.keys()
    assert (results / "trials" / record.trial_id / "command-page.html").stat().st_size > 1000


def test_its_status_is_recorded_and_the_verb_says_that_it_is_not_0(
    house: House, tmp_path: Path
) -> None:
    words = ("--json", "--", "sh", "-c", "echo no >&2; exit 7")
    code, said, _ = execute(house, tmp_path / "results", *words)
    assert code == EXIT_OUT_OF_TOLERANCE
    told = json.loads(said)
    assert (told["exit_code"], told["outcome"], told["error"]) == (1, "ok", "no\n")
    assert told["executed"]["exit_status"] == 7


def test_what_runs_at_the_other_end_listens_first(house: House, tmp_path: Path) -> None:
    results = tmp_path / "results"
    server = "import socket; s = socket.create_server(('{server}', 7)); c, _ = s.accept(); " \
        "c.sendall(b'hello'); c.close(); print('served')"  # fmt: skip
    client = "import socket; print(socket.create_connection(('{server}', 7)).recv(5).decode())"
    words = ("--peer", f'python3 -c "{server}"', "--", "python3", "-c", client)
    code, said, record = execute(house, results, *words)
    assert (code, said) == (EXIT_OK, "hello\n")
    assert executed_of(record).peer_status == 0
    log = results / "trials" / record.trial_id / "peer.log"
    assert log.read_text() == "served\n"


def test_a_command_that_changes_the_lab_is_found_out(house: House, tmp_path: Path) -> None:
    words = ("--", "ip", "link", "set", "c0", "mtu", "1400")
    assert_bad(execute(house, tmp_path / "results", *words)[2], "MTU", "lab_mismatch")


def test_a_program_that_cannot_be_started(house: House, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "x").write_text("not executable")
    words = ("--set", f"command_folder={mine}", "--", "{folder}/x")
    code, _, record = execute(house, tmp_path / "results", *words)
    assert code == EXIT_INCOMPLETE
    assert_bad(record, "Permission denied", "failed")
