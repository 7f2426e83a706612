"""Mininet on the host's kernel: the prompt of a lab, typed, and the lab's link in a script."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from testbed.base import places, proc
from testbed.results.folder import read_records
from tests.kernel.host_state import read_host_state
from tests.measured import executed_of
from tests.patience import PATIENT
from tests.typist import Typist, typing

# The command line on a machine that need not be idle, and with a link as late as that makes it;
# only its first trial, before anything was typed, finds the link not as exact as wanted.
PROGRAM = """\
import sys
from dataclasses import replace
from firstflight.cli.services import program_services
from firstflight.cli.main import main
from testbed.runner import prepare
from testbed.kernel.run import host
from testbed.base.places import cache
from testbed.kernel.build.native import ensure_native
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named
from tests.patience import NEVER, make_patient_bundle
prepare.make_bundle = make_patient_bundle
root = ensure_named(DEFAULT_ROOT, cache(), print)
native = ensure_native(cache(), print)
exact = [make_patient_bundle(cache(), native, root, exactness_wanted=NEVER).path]
run = host.HostKernel.run
host.HostKernel.run = lambda kernel, *trial: run(
    replace(kernel, bundle=exact.pop()) if exact else kernel, *trial
)
prepare.require_idle = lambda: None
host.await_idle = lambda cancel: not cancel.is_set()
sys.exit(main(sys.argv[1:], program_services()))
"""
QUICK = places.ROOT / "configs" / "quick.toml"


@pytest.mark.machine
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the host kernel needs root")
def test_typed_on_the_host_kernel(tmp_path: Path) -> None:
    before = read_host_state()
    results = tmp_path / "results"
    words = ("--kernel", "host", "--only", "tfo=false", "-o", str(results))
    argv = (sys.executable, "-c", PROGRAM, "shell", str(QUICK), *words)
    with typing(argv, env_with_windows(tmp_path)) as typist:
        session(typist, tmp_path / "window")
        status = typist.child.wait()
    disturbed, record = read_records(results)
    assert (disturbed.outcome, disturbed.measured) == ("lab_mismatch", None)
    assert record.outcome in ("ok", "lab_mismatch"), record.reason  # whatever the machine did
    assert executed_of(record).exit_status == 0
    assert status in (0, 1)
    assert read_host_state() == before


# What xterm is told to run, run without a display; what is said there goes into a file.
WINDOW = """\
#!{python}
import os, pty, sys
child, terminal = pty.fork()
if not child:
    argv = sys.argv[sys.argv.index("-e") + 1:]
    os.execvp(argv[0], argv)
said = b""
def read(prompts):
    global said
    while said.count(b"server:") < prompts:
        said += os.read(terminal, 4096)
read(1)
os.write(terminal, b"ip -color=never -brief address\\r")
read(2)
open({file!r}, "wb").write(sys.argv[2].encode() + said)
os.read(terminal, 4096)  # until the session ends
"""


def env_with_windows(folder: Path) -> dict[str, str]:
    """This process's environment, with an xterm."""
    xterm = folder / "bin" / "xterm"
    xterm.parent.mkdir()
    xterm.write_text(WINDOW.format(python=sys.executable, file=str(folder / "window")))
    xterm.chmod(0o755)
    return {**os.environ, "DISPLAY": ":7", "PATH": f"{xterm.parent}:{os.environ['PATH']}"}


def session(typist: Typist, window: Path) -> None:
    """Type, read, interrupt and leave."""
    assert "lab> " in typist.read_until("lab> ")
    typist.resize(132, 50)
    deadline = time.monotonic() + 30.0
    while typist.perform("sh stty size", "lab> ") != "50 132":
        assert time.monotonic() < deadline
    assert typist.perform("xterm nobody", "lab> ") == "node 'nobody' not in network"
    assert typist.perform("xterm server", "lab> ") == ""
    deadline = time.monotonic() + 30.0
    while not window.exists() or not window.stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert window.read_text().startswith("server - firstflight")
    assert "10.0.2.2/24" in window.read_text()
    assert typist.perform("client echo here-$((40 + 2))", "lab> ") == "here-42"
    assert "1 received" in typist.perform("client ping -c 1 server", "lab> ")
    typist.type("server sh -c 'echo begun-$((40 + 2)); exec sleep 3600'\r")
    assert "begun-42" in typist.read_until("begun-42")
    typist.type("\x03")  # Ctrl-C ends what runs there, and not the prompt
    assert "lab> " in typist.read_until("lab> ")
    typist.type("exit\r")
    typist.read_until("output and capture")


MEASURED = '"rtt_ms": ['
SCRIPT_OF_ONES_OWN = """\
import json, sys
from mininet.net import Mininet
from testbed.base.errors import TestbedError
from firstflight.mininet import CalibratedLink, leave_limits_alone
from testbed.lab import bridged_link as bridged
from testbed.lab.exactness import Exactness
bridged.HOST = {patient}
leave_limits_alone()
net = Mininet(controller=None)
h1, h2 = net.addHost("h1"), net.addHost("h2")
try:
    link = net.addLink(h1, h2, cls=CalibratedLink, **json.loads(sys.argv[1]))
except TestbedError as error:
    net.stop()
    sys.exit(f"refused: {{error}}")
net.start()
print(h1.cmd("ping -c 3 -i 0.3 10.0.0.2"))
report = link.read_report()
print(json.dumps({{
    "rtt_ms": [each.measured for each in link.measurements if each.name == "rtt"],
    "delivered": [report.down.delivered, report.up.delivered],
}}))
net.stop()
"""


@pytest.mark.machine
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.nightly(but=r'^{"rtt_ms": (40}|-1)')
@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ('{"rtt_ms": 40}', MEASURED),
        ('{"rtt_ms": -1, "loss_pct": 101}', "rtt_ms: -1 is not above 0 to 60000 ms"),
        ('{"rtt_ms": NaN, "mtu_bytes": 1500.5}', "mtu_bytes: 1500.5 is not a whole number"),
        ('{"bw": 10}', "bw: the link has no such knob; for TCLink's bw take down_kbit and up_kbit"),
        ('{"rtt": 100}', "rtt: the link has no such knob (knobs: rtt_ms, down_kbit"),
        ('{"seed": "x"}', "seed: 'x' is not a whole number from 0"),
        ('{"qdisc": "pfifo;id"}', "qdisc: 'pfifo;id' is not "),
        ('{"rtt_ms": 40, "intfName1": "eth7"}', MEASURED),
    ],
)
def test_a_link_of_a_script_of_ones_own(tmp_path: Path, knobs: str, said: str) -> None:
    before = read_host_state()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT_OF_ONES_OWN.format(patient=repr(PATIENT)))
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(places.ROOT),
                   "PYTHONDONTWRITEBYTECODE": "1",
                   "XDG_CACHE_HOME": str(places.cache().parent)}  # fmt: skip
    done = proc.run(
        ("/usr/bin/python3", str(script), knobs), env=environment, check=False, timeout_s=120
    )
    assert said in done.stdout + done.stderr
    assert (done.returncode == 0) == (said == MEASURED), done.stderr
    if said == MEASURED:
        found = json.loads(done.stdout.splitlines()[-1])
        assert len(found["rtt_ms"]) == 1 and found["rtt_ms"][0] >= 40.0
        assert min(found["delivered"]) >= 3
    assert read_host_state() == before
