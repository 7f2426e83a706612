"""The load generator and the event server on the virtual kernel: exact, and the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.guests import Guests
from tests.native.load import Programs, copy_programs

pytestmark = pytest.mark.guest

# A server that takes 1 ms for a request, and 20 % more than it can serve.
LOAD = """\
import subprocess
native, target = "/ff/bundle/native/", "127.0.0.1:8080"
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = subprocess.Popen(
    [native + "event-server", "--listen", target, "--price-request-ns", "1000000"],
    stdout=subprocess.PIPE, text=True,
)
server.stdout.readline()
done = subprocess.run(
    [native + "load-generator", "--target", target, "--rate", "1200", "--arrivals", "poisson",
     "--seed", "7", "--duration-ms", "1000", "--timeout-ms", "2000",
     "--histograms", "/ff/out/times.hlog"],
    stdout=subprocess.PIPE, text=True,
)
server.terminate()
leave(status=done.returncode, load=json.loads(done.stdout), served=json.loads(server.stdout.read()))
"""
WORK = """\
import subprocess
argv = ["/ff/bundle/native/event-server", "--listen", "127.0.0.1:8080", "--work-ns", "1000"]
done = subprocess.run(argv, stderr=subprocess.PIPE, text=True)
leave(status=done.returncode, complaint=done.stderr)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return copy_programs(tmp_path_factory.mktemp("native"))


def observe(guests: Guests, programs: Programs, folder: Path, program: str) -> dict[str, Any]:
    """What ``program`` left in a guest that has both programs."""
    made = tuple(programs.folder / name for name in ("load-generator", "event-server"))
    folder.mkdir()
    return replace(guests, programs=made, folder=folder).observe(program)


def test_load_is_exact_and_the_same_each_time(
    guests: Guests, programs: Programs, tmp_path: Path
) -> None:
    first, again = (observe(guests, programs, tmp_path / name, LOAD) for name in "ab")
    assert first == again
    logs = [(tmp_path / name / "out" / "times.hlog").read_bytes() for name in "ab"]
    assert logs[0] == logs[1]
    assert first["status"] == 0
    assert first["load"]["lateness_us"]["max"] < 200  # by the phase of the start: 14 or 146
    assert first["load"]["connections"]["completed"] == first["load"]["connections"]["started"]
    assert first["load"]["response_us"]["p50"] > 1000


def test_work_has_no_price_there(guests: Guests, programs: Programs, tmp_path: Path) -> None:
    seen = observe(guests, programs, tmp_path / "work", WORK)
    assert seen["status"] == 2
    assert "computing takes no time on this clock; set prices instead" in seen["complaint"]
