"""Every knob of every kind, off its default, with nobody acting on it: no number is believed.

Real loads of plain settings are judged as if another value had been asked for, of each knob that is
declared: a new one is in here by itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import MISSING, asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from testbed.base import places
from testbed.kernel.run.interface import RawResult
from testbed.kinds.exclusions import TABLE
from testbed.model import OBSERVATION_FILE, Record, kind_of
from testbed.model.knob import NO_PACKET, Declared, declared
from testbed.results.folder import read_records
from testbed.runner.judge import conclude
from testbed.traces.catalogue import read_all
from tests.acceptance.house import House, toml

pytestmark = pytest.mark.guest

Loads = Callable[[str], tuple[Record, Path]]

PAGES = "wikipedia", "wikipedia-h2", "reveal", "reveal-h2"
GRAPH = {"client": "graph", "page": "wikipedia"}
AGAIN = {"client": "chromium", "page": "reveal-h2", "web_server": "nginx-quic",
         "tls_resumption": True}  # fmt: skip
OVERLOAD = {"rate_per_s": 400, "listen_backlog": 16, "price": 100.0, "patience_s": 3.0}
BASES: dict[str, dict[str, Any]] = {
    "page": {"client": "chromium", "page": "wikipedia-h2"},
    "fast open": GRAPH | {"tfo": True, "server_think_ms": 20.0},
    "impaired": GRAPH | {"delay_jitter_ms": 2.0, "reorder_pct": 5.0, "path_mtu_bytes": 1300},
    "traced": GRAPH | {"trace_down": "starlink-down"},
    "visits": AGAIN | {"visits": 2, "idle_s": 5.0},
    "early": AGAIN | {"early_data": True},
    "command": {"page": "wikipedia", "command": "curl -s -o /dev/null {url}"},
    "server": OVERLOAD | {"mechanism": "reserv rst-syn"},
    "silent server": OVERLOAD,
    "bursts": OVERLOAD | {"burst_s": 0.2, "every_s": 1.0, "base_rate_per_s": 100},
    "closed loop": {"loop": "closed", "clients": 20},
}
"""Loads by their names; the first of a kind shows all knobs of that kind but those elsewhere."""
FIRST = {"page_load": "page", "command": "command", "server_load": "server"}
ELSEWHERE = {
    "tcp.cookies": "fast open", "tcp.requests_per_connection": "fast open",
    "think_time": "fast open", "think_spread_pct": "fast open",
    "link.delay_distribution": "impaired", "link.reorder_ms": "impaired",
    "link.path_mtu_discovery": "impaired", "link.trace_end": "traced",
    "link.trace_phase": "traced", "idle_s": "visits", "between": "visits", "early_data": "visits",
    "early_data_at": "early", "arrivals.clients": "closed loop",
    "arrivals.patience_s": "silent server", "arrivals.every_s": "bursts",
    "arrivals.base_rate_per_s": "bursts", "arrivals.syn_timeouts_s": "silent server",
}  # fmt: skip
"""Knobs that mean nothing in the first load of their kind."""
ECHOED = {"at", "command"}
"""What only the guest's own words show: a command may leave nothing else."""
VALUES: dict[str, Any] = {
    "link.qdisc": "fq_codel", "link.qdisc_down": "fq_codel", "link.qdisc_up": "fq_codel",
    "link.loss_bursts": "p 1 r 30 1-h 100 1-k 0", "link.changes": "at 0.1 s: down for 0.1 s",
    "link.trace_down": "none-such", "link.trace_up": "none-such", "link.hop_down": "none-such",
    "link.hop_up": "none-such", "tcp.congestion_control": "reno", "tcp.sysctl": {"tcp_sack": 0},
    "tcp.route": {"quickack": 1}, "traffic": "call", "server.prices": "shukla-2006",
    "start_spread_ms": 5000.0, "server_think_ms": 50.0, "link.delay_up_ms": 0.5,
    "tcp.requests_per_connection": 1, "link.path_mtu_bytes": 900, "idle_s": 86400.0,
"arrivals.syn_timeouts_s": "3 6", "arrivals.burst_s": 0.5,
    "protocol": "h1", "randomness": "pinned", "think_spread_pct": 50.0, "peer": "sleep 1",
    "block": "third-parties", "think_by_host": "none.test 50",
}  # fmt: skip
"""Values of knobs that are texts, or that half or twice as much would not move; of this page, which
was recorded with them, free random numbers are those recorded."""


@pytest.fixture(scope="module")
def loads(house: House) -> Loads:
    """A load by its name, performed when it is first asked for."""

    @cache
    def load(name: str) -> tuple[Record, Path]:
        knobs = BASES[name]
        folder = house.folder / "results" / name
        sets = [w for key, to in knobs.items() for w in ("--set", f"{key}={toml(to)}")]
        config = house.folder / "load.toml"
        if "page" in knobs:
            house.take(*PAGES)
            config.write_text('page = "none"\nclient = "graph"\n')
        else:
            times = "[arrivals]\nwarm_up_s = 1\nduration_s = 1\n"
            config.write_text(f'kind = "server_load"\n[link]\nrtt_ms = 2\n{times}')
        if name == "command":
            sets, words = sets[:2], ["--", *knobs["command"].split()]
            house.command("exec", str(config), *sets, "-o", str(folder), *words)
        else:
            house.command("run", str(config), *sets, "-o", str(folder))
        (record,) = read_records(folder)
        assert record.outcome == "ok", (name, record.reason)
        return record, folder / "trials" / record.trial_id

    return load


def list_knobs(name: str, spec: Any) -> Iterator[Declared]:
    """The knobs that the load of this name, of such a spec, is to show."""
    kind = kind_of(spec)
    rows = [row for row in TABLE if row.beside == "kind"]
    barred = {row.knob for row in rows
              if (row.other(kind) if callable(row.other) else row.other == kind)}  # fmt: skip
    own: type = type(spec)
    for knob in declared(own):
        path = ".".join((*knob.table, knob.name))
        told = knob.default is MISSING or knob.knob.shown == NO_PACKET
        if (
            not told
            and path not in barred | ECHOED
            and ELSEWHERE.get(path, FIRST.get(kind)) == name
        ):
            yield knob


def others(knob: Declared, now: Any) -> Iterator[Any]:
    """Values of ``knob`` that are not what it has."""
    name = ".".join((*knob.table, knob.name))
    if name in VALUES:
        yield VALUES[name]
        return
    kinds = (knob.type, *get_args(knob.type))
    yield from (each for each in kinds if isinstance(each, str) and each != now)
    if knob.type is bool:
        yield not now
    number = next((each for each in kinds if each in (int, float)), None)
    if number is not None:
        least = knob.knob.low if knob.knob.low is not None else knob.knob.above or 0
        most = least + 1 if knob.knob.high is None else knob.knob.high
        yield number(min(most, 2 * (now or least) or 10))


def asked(spec: Any, path: tuple[str, ...], value: Any) -> Any:
    first, *rest = path
    inner = asked(getattr(spec, first), tuple(rest), value) if rest else value
    return replace(spec, **{first: inner})


def judge(record: Record, left: Path, path: tuple[str, ...], value: Any, out: Path) -> Record:
    """The record of a load that was asked for with another value, and performed without it."""
    trial = replace(record.trial, condition=asked(record.trial.condition, path, value))
    out.mkdir()
    for file in left.iterdir():
        (out / file.name).symlink_to(file)
    seen = json.loads((left / OBSERVATION_FILE).read_text())
    seen["trial"] = json.loads(json.dumps(asdict(trial)))
    (out / OBSERVATION_FILE).unlink()
    (out / OBSERVATION_FILE).write_text(json.dumps(seen))
    known = ("starlink-down",)
    traces = read_all(known, None, places.TRACES) if "link" in path else {}
    raw = RawResult("ended", "", "", None, out / OBSERVATION_FILE, None, traces)
    try:
        return conclude(trial, raw, out, record.environment, 1)
    finally:
        shutil.rmtree(out)


@pytest.mark.nightly(but="^(page|fast open)$")
@pytest.mark.parametrize("name", BASES)
def test_nobody_acts_on_any_knob(loads: Loads, name: str, tmp_path: Path) -> None:
    record, left = loads(name)
    believed, judged = [], 0
    for knob in list_knobs(name, record.trial.condition):
        path = (*knob.table, knob.name)
        now = record.trial.condition
        for part in path:
            now = getattr(now, part)
        values = list(others(knob, now))
        assert values, f"{knob.name} needs a value in VALUES"
        for value in values:
            judged += 1
            if judge(record, left, path, value, tmp_path / "out").outcome == "ok":
                believed.append(f"{'.'.join(path)} = {value}")
    assert judged and believed == [], believed
