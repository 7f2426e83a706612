"""One trial, performed where its kernel runs: lab, server, client and capture joined.

Standard library only: this is what a guest executes.  ``testbed.conclude`` turns what it leaves
behind (``observation.json`` and the capture) into a Record on the host.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.client import CLIENTS
from testbed.client.protocol import LoadOrder, LoadTimeoutError
from testbed.errors import LabError, MissingError, TestbedError
from testbed.lab.laboratory import Lab, open_lab
from testbed.lab.topology import RESOLVER_ADDRESS, origin_address
from testbed.model import CAPTURE_FILE, OBSERVATION_FILE, TRIAL_FILE, Outcome, PageLoad, Trial
from testbed.page.archive import Archive, read_archive
from testbed.server.nginx import serve
from testbed.server.resolver import resolve
from testbed.wire.capture import capture
from testbed.wire.counters import difference, read_counters

DRAIN_S = 2.0
# A client handles what pages send: it has no privileges, and a browser then has its sandbox.
CLIENT_USER = 1000
UNPRIVILEGED = (
    *("setpriv", f"--reuid={CLIENT_USER}", f"--regid={CLIENT_USER}", "--clear-groups"),
    "--no-new-privs",
)
ALIGN_NS = 10_000_000_000
LAUNCH_NS = 5_000_000_000


@dataclass(frozen=True, slots=True)
class Site:
    """Where a trial is performed, and with what: all paths exist, ``scratch`` is empty."""

    page: Path
    out: Path
    bundle: Path
    scratch: Path
    tag: str = ""
    aligned: bool = True


def perform(trial: Trial, site: Site) -> dict[str, object]:
    """Perform ``trial`` and return the observation; what went wrong is part of it."""
    observation: dict[str, object] = {}
    archive = read_archive(site.page)
    addresses = {host: origin_address(i) for i, host in enumerate(archive.hosts)}
    try:
        with open_lab(trial.condition, len(addresses), site.tag) as lab:
            observation["lab"] = asdict(lab.reading)
            if not lab.reading.problems:
                _measure(trial, site, archive, addresses, lab, observation)
    except (TestbedError, OSError) as error:
        observation["error"] = str(error)
        observation["outcome"] = _outcome(error)
    return observation


def _outcome(error: Exception) -> Outcome:
    """What an error means for the trial: this kernel or machine cannot, too slow, or a fault."""
    if isinstance(error, LoadTimeoutError):
        return "timeout"
    return "unsupported" if isinstance(error, MissingError) else "failed"


def _measure(
    trial: Trial,
    site: Site,
    archive: Archive,
    addresses: dict[str, str],
    lab: Lab,
    observation: dict[str, object],
) -> None:
    topology, tcp = lab.topology, trial.condition.tcp
    ends = {"client": topology.client, "server": topology.server}
    pcap = site.scratch / CAPTURE_FILE
    with (
        serve(
            topology.server,
            archive,
            addresses,
            site.scratch / "nginx",
            tcp.requests_per_connection,
        ),
        resolve(
            topology.client,
            topology.server,
            addresses,
            RESOLVER_ADDRESS,
            trial.condition.dns,
            site.scratch,
        ),
    ):
        lab.prime_cookies(len(addresses))
        before = {end: read_counters(namespace) for end, namespace in ends.items()}
        order = _order(trial, site, archive, lab)
        try:
            with capture(topology.client, "c0", pcap, site.scratch / "tcpdump.log"):
                load = CLIENTS[trial.condition.client].load(order)
                # The last FINs and ACKs belong to the trial.
                time.sleep(DRAIN_S)
        finally:
            # Of a failed load, too: its log and its packets are what explains it.
            for file in (pcap, *sorted(order.out.iterdir())):
                if file.is_file() and not file.is_symlink():
                    shutil.copyfile(file, site.out / file.name)
        after = {end: read_counters(namespace) for end, namespace in ends.items()}
    observation["load"] = asdict(load)
    observation["counters"] = {end: difference(before[end], after[end]) for end in ends}
    _require_complete(load)


def _order(trial: Trial, site: Site, archive: Archive, lab: Lab) -> LoadOrder:
    scratch, out = site.scratch / "client", site.scratch / "client-out"
    for folder in (scratch, out):
        folder.mkdir()
        folder.chmod(0o777)
    return LoadOrder(
        archive=archive,
        prefix=(*lab.topology.client.prefix, *UNPRIVILEGED),
        tfo=trial.condition.tcp.tfo,
        think_time=trial.condition.think_time,
        bundle=site.bundle,
        scratch=scratch,
        out=out,
        timeout_s=trial.timeout_s,
        user=CLIENT_USER,
        wait_until_ns=_next_start(time.time_ns()) if site.aligned else None,
    )


def _next_start(now_ns: int) -> int:
    """A round instant far enough away for a browser to start: what happened before has no trace."""
    return -(-(now_ns + LAUNCH_NS) // ALIGN_NS) * ALIGN_NS


def _require_complete(load: PageLoad) -> None:
    complaints = [
        f"{len(urls)} {what}: {', '.join(urls[:3])}{' ...' if len(urls) > 3 else ''}"
        for what, urls in (
            ("recorded requests were not made", load.missing),
            ("requests are not in the recording", load.extra),
            ("requests failed", load.failed),
        )
        if urls
    ]
    if complaints:
        raise LabError("; ".join(complaints))


def main(site: Site) -> None:
    """Perform the trial described in ``site.out`` and leave the observation beside it."""
    trial = Trial.from_dict(json.loads((site.out / TRIAL_FILE).read_text()))
    started = time.monotonic()
    observation = perform(trial, site)
    observation["virtual_s"] = time.monotonic() - started
    partial = site.out / f"{OBSERVATION_FILE}.partial"
    partial.write_text(json.dumps(observation, sort_keys=True))
    partial.rename(site.out / OBSERVATION_FILE)
