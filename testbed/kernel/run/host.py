"""Host kernel: the machine's own kernel in real time, one enclosure for each trial.

The very same ``testbed.runner.trial`` runs from the same bundle as in a guest, over the same paths,
only that computing costs what it costs; so one trial runs at a time, on a machine that is idle.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from testbed.base import log, proc
from testbed.base.errors import MissingError
from testbed.kernel.run.enclosure import (
    PATH,
    EnclosureFiles,
    confined,
    enclosure_argv,
    require_privileges,
)
from testbed.kernel.run.hardware import read_hardware
from testbed.kernel.run.idle import await_idle
from testbed.kernel.run.interface import InterruptedTrial, RawResult
from testbed.kernel.run.sandbox import gather_result, run_trial
from testbed.model import TRIAL_FILE, Trial

SETUP_S = 90.0
"""Real time for the lab, its calibration and the server, beyond the load's own limit."""
PROBE_S = 60.0
HOSTED = ("/usr/bin/python3", "-I", "-S", "/ff/bundle/testbed/runner/host_entry.py")
BROWSER_VARIABLE = "FIRSTFLIGHT_BROWSER"
_log = log.logger(__name__)


@dataclass(frozen=True, slots=True)
class HostKernel:
    """The running kernel.

    Attributes:
        version: its release, as ``uname -r`` has it.
        bundle: harness, native helpers and browser driver.
        usr: the user land of its trials, that of a root.
        machine: what of the machine can influence a result; part of the identity.
        browser: another browser than the installed headless-shell, or ``None``.
        management: the compiled BPF program for loads on a server, which need it.
    """

    version: str
    bundle: Path
    usr: Path
    machine: dict[str, str]
    browser: Path | None = None
    management: Path | None = None
    name: str = "host"
    confinement: str = "enclosure"

    def identity(self) -> dict[str, str]:
        """Return the kernel's release and build, the processor, the link's backend."""
        return {"name": self.name, "version": self.version, **self.machine}

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        """Perform ``trial`` in an enclosure of its own (see ``Kernel.run``)."""
        (out / TRIAL_FILE).write_text(json.dumps(asdict(trial), sort_keys=True))
        if not await_idle(cancel):
            raise InterruptedTrial(f"trial {trial.id} was interrupted")
        folder = None if page is None else page.resolve()
        browser = None if self.browser is None else self.browser.parent
        files = EnclosureFiles(
            self.bundle, self.usr, folder, out.resolve(), browser, self.management
        )
        argv = (
            *enclosure_argv(files, environment_of(self.browser)),
            *(*HOSTED, "trial", tag_of(os.getpid(), slot)),
        )
        limit_s = trial.limit_s + SETUP_S
        started_s = time.monotonic()
        ended, console = run_trial(partial(confined, argv), out, limit_s, cancel)
        return gather_result(
            trial, "the trial", out, ended, console,
            started_s=started_s, limit_s=limit_s, cancel=cancel,
        )  # fmt: skip


def open_host(version: str, bundle: Path, usr: Path) -> HostKernel:
    """Return the running kernel, if it is ``version`` and this process may use it.

    Raises:
        MissingError: another kernel runs; a privilege or a feature of the kernel is missing.
    """
    running = os.uname().release
    if version != running:
        raise MissingError(
            f"the host kernel is {running}, not {version}: boot that, or leave --kernel-version out"
        )
    browser = named_browser(os.environ.get(BROWSER_VARIABLE))
    facts = probe_host(bundle, usr)
    if "problem" in facts:
        raise MissingError(facts["problem"])
    if facts["scheduler"] != "fifo":
        _log.warning(
            "the link has no real-time priority here (no CAP_SYS_NICE): on a busy machine packets "
            "are late, and trials are taken again"
        )
    machine = read_hardware() | {"link": facts["backend"], "link_scheduler": facts["scheduler"]}
    if browser is not None:
        completed = proc.run((str(browser), "--version"), timeout_s=20, check=False)
        machine["browser"] = completed.stdout.strip() or f"{browser} (no version)"
    return HostKernel(version, bundle, usr, machine, browser)


def probe_host(bundle: Path, usr: Path) -> dict[str, str]:
    """Ask the kernel, from inside an enclosure, what it has (``testbed.runner.host_entry.probe``).

    Raises:
        MissingError: a privilege or a tool is missing, or there can be no enclosure.
    """
    require_privileges(os.geteuid(), Path("/proc/self/status").read_text())
    argv = (*enclosure_argv(EnclosureFiles(bundle, usr), environment_of(None)), *HOSTED, "probe")
    probe = proc.run(argv, timeout_s=PROBE_S, check=False)
    if probe.returncode != 0:
        raise MissingError(
            "this machine gives no enclosure to trials on the host kernel "
            f"(`bwrap` ended with status {probe.returncode}: {probe.stderr.strip()[-2000:]}); "
            "use the virtual kernel: --kernel virtual"
        )
    answer = json.loads(probe.stdout.splitlines()[-1])
    return {str(name): str(value) for name, value in answer.items()}


def tag_of(pid: int, slot: int) -> str:
    """Return a prefix of names that no other trial on this machine has at this time."""
    return f"ff{pid}s{slot}-"


def named_browser(named: str | None) -> Path | None:
    """Return the browser that the environment names, with its links resolved.

    Raises:
        MissingError: it cannot be run, or an enclosure would hide it.
    """
    if not named:
        return None
    if not os.access(named, os.X_OK):
        raise MissingError(f"{BROWSER_VARIABLE}={named}: no such program")
    browser = Path(named).resolve()
    if browser.is_relative_to("/usr"):
        raise MissingError(
            f"{BROWSER_VARIABLE}={named}: {browser} is below /usr, where trials have the root's "
            "files and not this machine's; copy the browser's folder elsewhere and name that"
        )
    return browser


def environment_of(browser: Path | None) -> dict[str, str]:
    """Return the environment of a trial: that of a guest, the same for all users."""
    fixed = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0",
             "PYTHONDONTWRITEBYTECODE": "1", "PYTHON_COLORS": "0"}  # fmt: skip
    return fixed if browser is None else fixed | {BROWSER_VARIABLE: str(browser)}
