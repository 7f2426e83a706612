"""The lab under Mininet's prompt: scripted, on the virtual kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import EXIT_MISSING, EXIT_OK
from testbed.results.store import read_records
from tests.acceptance.house import House, assert_ok

QUICK = places.ROOT / "configs" / "quick.toml"
SCRIPT = """\
nodes
client curl -s -o /dev/null -w %{http_code} http://en.wikipedia.org.p.test/0.html
client python3 -c "import socket; print(socket.create_connection(('10.0.2.2', 7)))" ; echo $?
server ss -lnt
client echo server
"""


@pytest.fixture
def wikipedia(house: House) -> None:
    if not (house.pages / "wikipedia").exists():
        shutil.copytree(places.ROOT / "pages" / "wikipedia", house.pages / "wikipedia")


@pytest.mark.guest
@pytest.mark.usefixtures("wikipedia")
def test_a_script_in_virtual_time(house: House, tmp_path: Path) -> None:
    results, script = tmp_path / "results", tmp_path / "script"
    script.write_text(SCRIPT)
    code, said = house.command(
        "shell", str(QUICK), "--only", "tfo=true", "--script", str(script), "-o", str(results)
    )
    assert code == EXIT_OK, said
    assert "lab> nodes\navailable nodes are: \nclient far near server\n" in said
    assert "\n200" in said  # the page, by its name, from its server
    assert "Connection refused" in said  # of the server's own address
    assert "10.10.0.1:80" in said
    assert "lab> client echo server\n10.0.2.2\n" in said  # as Mininet does
    (record,) = read_records(results)
    assert_ok(record)
    assert record.proof is not None and record.proof.connections == 2


@pytest.mark.guest
@pytest.mark.usefixtures("wikipedia")
def test_without_mininet_the_remedy_is_said(
    house: House,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from firstflight.cli import shell

    monkeypatch.setattr(shell, "MININET", tmp_path / "nowhere")
    code, _ = house.command("shell", str(QUICK), "--script", "x")
    assert code == EXIT_MISSING
    assert "apt-get install --no-install-recommends mininet" in capsys.readouterr().err
