"""A results folder as a run leaves it, with invented but plausible numbers, for the tests.

``python -m tests.analysis.sample DIR [SEEDS]`` writes one to look at, ``... DIR 0`` that of a page
over TLS with inexact and missed requests.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.records.cells import cells_of
from analysis.records.results import read_results
from analysis.report.document import write_reports
from analysis.tables.table import ResultTable, make_table
from testbed.model import (
    Condition,
    Cost,
    Experiment,
    LabReading,
    LinkSpec,
    Measurement,
    PageLoad,
    Proof,
    Record,
    Replay,
    RequestTiming,
    Substitution,
    TcpSpec,
    Trial,
)
from testbed.results.environment import Environment
from testbed.results.manifest import Manifest, write_manifest
from testbed.results.records import write_record
from tests.measured import load_of

PAGES = {"amazon": (1400.0, 6, 62), "nytimes": (3300.0, 9, 118), "wsj": (3900.0, 12, 140),
         "wikipedia": (1700.0, 5, 31)}  # fmt: skip
RTTS = (20.0, 100.0, 200.0)
VERSION = "HeadlessChrome/156.0.8000.1"
ENVIRONMENT = Environment(
    parts={"architecture": "x86_64", "code.native": "5d" * 32, "code.testbed": "ab" * 32,
           "kernel.build": "0f" * 32, "kernel.source": "linux-source-7.3 7.3.4-1~bpo13+1",
           "package.chromium-headless-shell": "156.0.8000.1-1~deb12u1",
           "package.nginx": "1.22.1-9+deb12u2", "program.nginx": "nginx version: nginx/1.22.1",
           "program.node": "v18.20.4"},
    pages={name: hashlib.sha256(name.encode()).hexdigest() for name in PAGES},
    facts={"git_revision": "12" * 20, "git_dirty": "no", "cores": "2", "user": "root"},
)  # fmt: skip


def conditions(
    pages: Iterable[str] = PAGES, rtts: Iterable[float] = RTTS, tfos: Sequence[bool] = (False, True)
) -> tuple[Condition, ...]:
    """The sweep of Table 1."""
    return tuple(
        Condition(page, "chromium", LinkSpec(rtt_ms=rtt), TcpSpec(tfo=tfo, initcwnd_segments=3))
        for page in pages
        for rtt in rtts
        for tfo in tfos
    )


def experiment(seeds: int = 1, **changes: Any) -> Experiment:
    """Table 1 with ``seeds`` repetitions."""
    table1 = Experiment(name="paper-table1", title="Table 1 of the TCP Fast Open paper",
                        conditions=conditions(), repetitions=seeds,
                        reference="fastopen-table1")  # fmt: skip
    return replace(table1, **changes)


def record(condition: Condition, seed: int = 0, plt_ms: float | None = None) -> Record:
    """A proven record; its load time is ``plt_ms`` or follows from the condition and the seed."""
    trial = Trial(condition, seed, seed, "virtual", "7.3")
    base, turns, number = PAGES.get(condition.page, (1000.0, 4, 20))
    noise = random.Random(f"{condition.page} {condition.link.rtt_ms} {seed}")  # noqa: S311
    rtt = condition.link.rtt_ms
    if plt_ms is None:
        saved = 0.8 * turns if condition.tcp.tfo else 0.0
        plt_ms = base + rtt * (2.2 * turns - saved) + noise.choice((0.0, 0.0, 0.3, 16.6))
    tfo = condition.tcp.tfo
    made = number // 3
    return Record(
        trial_id=trial.id, trial=trial, outcome="ok", environment=ENVIRONMENT.id,
        lab=LabReading(
            (
                Measurement("rtt", "ms", rtt + 1.0037, rtt + 1.0035, 0.1),
                Measurement("down_rate", "kbit/s", 3999.87, 4000.0, 0.1),
                Measurement("up_rate", "kbit/s", 256.002, 256.0, 0.1),
                Measurement("down_buffer", "packets", 87.0, 87.0, 0.0),
            ),
            {"client.net.ipv4.tcp_fastopen": "1" if tfo else "0", "offloads": "off"},
        ),
        measured=PageLoad("chromium", VERSION, plt_ms,
                          requests(condition.page, number, plt_ms, noise)),
        replay=Replay(number, most_per_connection=3,
                      protocols={f"http://www.{condition.page}.test HTTP/1.1": number}),
        proof=Proof(connections=made, syns=made, syns_with_payload=made if tfo else 0,
                    syn_payload_bytes=made * 471 if tfo else 0, cookie_requests=0,
                    syn_data_acked=made if tfo else 0, retransmits=0,
                    client_counters={"TCPFastOpenActive": made if tfo else 0},
                    server_counters={"TCPFastOpenPassive": made if tfo else 0}),
        cost=Cost(2.1 + noise.random(), 3.2 + noise.random(), plt_ms / 1000 + 9.0),
        artefacts={"client.pcap": hashlib.sha256(trial.id.encode()).hexdigest()},
    )  # fmt: skip


def with_milestones(good: Record, **values: float | None) -> Record:
    """``good`` as a browser of today tells it: what a visitor sees, or ``values`` of it."""
    plt_ms, rtt_ms = load_of(good).plt_ms, good.trial.condition_as(Condition).link.rtt_ms
    first = 4.0 * round((plt_ms * 0.3 + rtt_ms) / 4.0)
    seen: dict[str, Any] = {
        "ttfb_ms": 3.1 * rtt_ms + 21.9, "fp_ms": first,
        "fcp_ms": first + (8.0 if good.trial.condition_as(Condition).page == "wsj" else 0.0),
        "lcp_ms": first + 12.0, "cls": 0.0016,
    }  # fmt: skip
    return replace(good, measured=replace(load_of(good), **seen | values))


def requests(
    page: str, number: int, plt_ms: float, noise: random.Random
) -> tuple[RequestTiming, ...]:
    """A root document, then the rest in bunches."""
    root = RequestTiming(f"http://www.{page}.test/", 200, 31.5, plt_ms * 0.22, 41838, "1")
    rest = []
    for i in range(1, number):
        start = plt_ms * (0.12 + 0.7 * i / number) + noise.random() * 20
        end = min(start + plt_ms * (0.05 + 0.12 * noise.random()), plt_ms - 1)
        kind = noise.choice(("css/site", "js/app", "img/photo", "img/icon"))
        url = f"http://static{i % 5}.{page}.test/{kind}-{i}.dat"
        size = noise.randrange(600, 30000)
        rest.append(RequestTiming(url, 200, start, max(end, start + 1), size, str(2 + i % 7)))
    return (root, *rest)


def over_tls(good: Record) -> Record:
    """``good`` with hellos of 1.9 KB in TLS 1.3, of 0.4 KB in TLS 1.2, as far as they fit."""
    assert good.proof is not None and good.replay is not None
    condition, made = good.trial.condition_as(Condition), good.proof.connections
    size = 1893 if condition.tls_version == "1.3" else 395
    ridden = min(size, 1420) if condition.tcp.tfo else 0
    proof = replace(good.proof, syn_payload_bytes=made * ridden, tls_connections=made,
                    hello_bytes=made * size, syn_hello_bytes=made * ridden)  # fmt: skip
    return replace(good, proof=proof)


def answered_inexactly(good: Record, times: int = 1) -> Record:
    """``good`` with ``times`` requests that were answered by what resembles them."""
    assert good.replay is not None
    host = good.trial.condition_as(Condition).page
    pixel_url = f"https://ads.{host}.test/pixel?slot="
    swaps = tuple(
        Substitution(f"GET {pixel_url}{i}&t=17{i:04d}", f"GET {pixel_url}{i}&t=99")
        for i in range(times)
    )
    load = replace(load_of(good), missing=tuple(f"{pixel_url}{i}&t=99" for i in range(times)),
                   extra=tuple(f"{pixel_url}{i}&t=17{i:04d}" for i in range(times)))  # fmt: skip
    replay = replace(good.replay, exact=good.replay.exact - times, inexact=swaps)
    return replace(good, measured=load, replay=replay)


def missed(good: Record, *requests: str) -> Record:
    """``good`` with ``requests`` that the page does not hold; it counts if it may."""
    assert good.replay is not None
    urls = tuple(request.partition(" ")[2] for request in requests)
    load = replace(load_of(good), extra=load_of(good).extra + urls, failed=urls)
    replay = replace(good.replay, missed=requests)
    good = replace(good, measured=load, replay=replay)
    if good.trial.condition_as(Condition).allow_misses:
        return good
    reason = (
        f"{len(requests)} requests missed: {', '.join(requests[:3])}; "
        "record the page again, or set allow_misses = true"
    )
    return replace(good, outcome="failed", reason=reason)


def broken(good: Record, outcome: str) -> Record:
    """What ``good`` would be had it ended with ``outcome``."""
    if outcome == "unproven":
        assert good.proof is not None
        problem = "3 of 20 SYNs carry no request (cs-server 10.0.0.7: no cookie)"
        proof = replace(good.proof, syns_with_payload=17, problems=(problem,))
        return replace(good, outcome="unproven", reason=problem, proof=proof)
    if outcome == "lab_mismatch":
        assert good.lab is not None
        first = replace(good.lab.measurements[0], measured=250.0)
        lab = replace(good.lab, measurements=(first, *good.lab.measurements[1:]))
        reason = "; ".join(lab.problems)
        return replace(good, outcome="lab_mismatch", reason=reason, lab=lab, measured=None,
                       proof=None, artefacts={})  # fmt: skip
    reason = "no end after 120 s of wall time; the console's last lines:\n[  12.3] nginx: <up>"
    return replace(
        good, outcome="timeout", reason=reason, lab=None, measured=None, proof=None, artefacts={}
    )


def har(load: PageLoad) -> dict[str, Any]:
    """The HAR 1.2 of ``load``."""
    entries = []
    for i, request in enumerate(load.requests):
        whole = request.end_ms - request.start_ms
        first = i < 14
        shares = (0.05, 0.05 if i < 5 else -1, 0.3 if first else -1, 0.02, 0.35, 0.23)
        names = ("blocked", "dns", "connect", "send", "wait", "receive")
        entries.append(
            {
                "pageref": "page_1",
                "startedDateTime": _stamp(request.start_ms),
                "time": whole,
                "request": {"method": "GET", "url": request.url, "headersSize": 400},
                "response": {"status": request.status, "headersSize": 480,
                             "bodySize": request.transfer_bytes,
                             "_transferSize": request.transfer_bytes},
                "cache": {},
                "timings": {
                    name: share * whole if share >= 0 else -1
                    for name, share in zip(names, shares, strict=True)
                },
            }
        )  # fmt: skip
    page = {"id": "page_1", "startedDateTime": _stamp(0.0), "pageTimings": {"onLoad": load.plt_ms}}
    return {"log": {"version": "1.2", "pages": [page], "entries": entries}}


def write_results(
    folder: Path, records: Iterable[Record], plan: Experiment,
    environment: Environment = ENVIRONMENT,
) -> Path:  # fmt: skip
    """Write records, HAR files and the manifest as a run does; returns ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for trial_record in records:
        if (
            trial_record.measured_as(PageLoad) is not None
            and "load.har" not in trial_record.artefacts
        ):
            content = json.dumps(har(load_of(trial_record))).encode()
            place = folder / "trials" / trial_record.trial_id / "load.har"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            sha256 = hashlib.sha256(content).hexdigest()
            trial_record = replace(
                trial_record, artefacts={**trial_record.artefacts, "load.har": sha256}
            )
        written.append(trial_record)
    write_records(folder, written)
    trials = tuple(trial_record.trial_id for trial_record in written)
    manifest = Manifest(
        plan, environment, trials, "2026-11-20T23:59:00Z",
        ("run", "configs/paper-table1.toml", "-n", str(plan.repetitions)),
    )  # fmt: skip
    write_manifest(folder, manifest)
    return folder


def tabled(folder: Path, records: Sequence[Record], seeds: int = 1) -> ResultTable:
    """The table of a run of ``records``, beside nothing that was published."""
    asked = tuple(dict.fromkeys(one.trial.condition for one in records))
    write_results(folder, records, experiment(seeds, conditions=asked, reference=None))
    return make_table(cells_of(read_results(folder)), None)


def report_section(folder: Path, name: str, *records: Record) -> str:
    """The section ``name`` of the report of ``records``; empty if there is none, nor a link."""
    asked = tuple(dict.fromkeys(one.trial.condition for one in records))
    write_results(folder, records, experiment(1, conditions=asked, reference=None))
    write_reports(folder)
    page = (folder / "report.html").read_text()
    section = re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
    assert (f'href="#{name}"' in page) == bool(section)
    return section[0] if section else ""


def write_records(folder: Path, records: Iterable[Record]) -> None:
    """Write ``records.jsonl`` in the given order."""
    lines = b"".join(map(write_record, records))
    (folder / "records.jsonl").write_bytes(lines)


def write_sample(folder: Path, seeds: int = 1) -> Path:
    """24 cells of which three did not go well and one did not run."""
    plan = experiment(seeds)
    records = [record(c, seed) for c in plan.conditions_as(Condition) for seed in range(seeds)]
    bad = {7 * seeds: "unproven", 12 * seeds: "timeout", 17 * seeds: "lab_mismatch"}
    records = [broken(r, bad[i]) if i in bad else r for i, r in enumerate(records)]
    return write_results(folder, records[:-1], plan)


def write_tls_sample(folder: Path) -> Path:
    """Both TLS versions, HTTP/2 asked for, misses allowed on one page; not all went exactly."""
    cells = tuple(
        replace(c, protocol="h2", tls_version=version, allow_misses=c.page == "wsj")
        for version in ("1.3", "1.2")
        for c in conditions(("amazon", "wsj"), (20.0, 100.0))
    )
    records = [over_tls(record(c)) for c in cells]
    records[2:6] = [answered_inexactly(load, 3) for load in records[2:6]]
    for place in (1, 6):
        records[place] = missed(
            records[place], "GET https://static1.amazon.test/late.js?cb=1234567890123456789012345",
            "POST https://collect.amazon.test/v1/beacon", "(unreached) https://new.example.test/",
        )  # fmt: skip
    return write_results(folder, records, experiment(1, conditions=cells, reference=None))


def _stamp(ms: float) -> str:
    whole, rest = divmod(ms / 1000.0, 60)
    return f"2026-01-01T00:{int(whole):02d}:{rest:09.6f}Z"


if __name__ == "__main__":
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    target = Path(sys.argv[1])
    write_reports(write_sample(target, seeds) if seeds else write_tls_sample(target))
