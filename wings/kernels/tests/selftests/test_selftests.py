"""Selftests in guests: tests of the kernel's own source, and the machinery for packetdrill.

packetdrill itself is no package of Debian's, so its place is taken by a miniature (``drill``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.cli.main import main
from testbed.base import places
from tests.hallway import make_services
from wings.kernels.tests.selftests.drill import write_drill

RECORDS = "selftests.jsonl"


def run(out: Path, *words: str) -> int:
    services = replace(make_services(out.parent), cache=places.cache)
    return main(["kernel", "selftests", *words, "-o", str(out)], services)


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("version", ["7.3", "6.1"])
def test_tests_of_the_source_have_equal_verdicts_twice(version: str, tmp_path: Path) -> None:
    drill = write_drill(tmp_path / "drill")
    words = ("reuseport_dualstack", "tls", "--kernel-version", version)
    files = []
    for number in range(2):
        out = tmp_path / f"run-{number}"
        assert run(out, *words, "--packetdrill", str(drill)) == 0
        files.append((out / RECORDS).read_text())
    assert files[0] == files[1]
    verdicts = {line["name"]: line for line in map(json.loads, files[0].splitlines())}
    assert verdicts["net/reuseport_dualstack"]["state"] == "passed"
    assert verdicts["net/tls"]["state"] == "skipped"
    assert "CONFIG_TLS" in verdicts["net/tls"]["reason"]


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
def test_a_suite_fails_with_packetdrills_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drill = write_drill(tmp_path / "drill")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "good.pkt").write_text("0 socket(...) = 3\n")
    (suite / "bad.pkt").write_text("--ip_version=ipv6\n\n+0 < FAIL\n")
    out = tmp_path / "run"
    words = ("--suite", str(suite), "--packetdrill", str(drill), "--style", "tap13")
    assert run(out, *words) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["TAP version 13", "1..2"]
    assert "# ipv6: bad.pkt:3: error handling packet: planted" in said
    assert said[-2:] == ["not ok 1 - suite/suite/bad.pkt", "ok 2 - suite/suite/good.pkt"]


@pytest.mark.nightly
@pytest.mark.guest
@pytest.mark.slow
def test_without_packetdrill_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FIRSTFLIGHT_PACKETDRILL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ("tcp_fastopen_server_basic-rw", "sk_connect_zero_addr")
    assert run(tmp_path / "run", *words) == 3
    said = capsys.readouterr()
    assert "skipped     packetdrill/tcp_fastopen_server_basic-rw.pkt: no packetdrill" in said.out
    assert "2 tests: 1 passed, 1 skipped" in said.out
    assert "--packetdrill FOLDER" in said.err
