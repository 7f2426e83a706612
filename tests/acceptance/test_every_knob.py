"""Every knob of every kind, off its default, with nobody acting on it: no number is believed.

Real loads of plain settings are judged as if another value had been asked for, of each knob that is
declared: a new one is in here by itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import MISSING, asdict, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from testbed.kernel.run.interface import RawResult
from testbed.model import OBSERVATION_FILE, Record
from testbed.model.knob import NO_PACKET, Declared, declared
from testbed.results.folder import read_records
from testbed.runner.judge import conclude
from tests.acceptance.house import House

pytestmark = pytest.mark.guest

PAGE = {"client": "chromium", "page": "wikipedia-h2"}
BASES: dict[str, dict[str, Any]] = {
    "page": PAGE,
    "visits": PAGE | {"visits": 2, "idle_s": 5.0, "tls_resumption": True,
                      "web_server": "nginx-quic"},
    "fast open": {"client": "graph", "page": "wikipedia", "tfo": True},
    "server": {"rate_per_s": 400, "listen_backlog": 16, "price": 100.0, "patience_s": 3.0,
               "mechanism": "reserv rst-syn"},
    "silent server": {"rate_per_s": 400, "listen_backlog": 16, "price": 100.0, "patience_s": 3.0},
    "closed loop": {"loop": "closed", "clients": 20},
}  # fmt: skip
ELSEWHERE = {
    "idle_s": "visits", "between": "visits", "early_data": "visits", "key_share": "visits",
    "tcp.cookies": "fast open", "think_time": "fast open", "arrivals.clients": "closed loop",
    "tcp.requests_per_connection": "fast open", "arrivals.patience_s": "silent server",
}  # fmt: skip
"""Knobs that mean nothing in the plain load of their kind."""
VALUES: dict[str, Any] = {
    "link.qdisc": "fq_codel", "link.qdisc_down": "fq_codel", "link.qdisc_up": "fq_codel",
    "link.loss_bursts": "p 1 r 30 1-h 100 1-k 0", "link.changes": "at 0.1 s: down for 0.1 s",
    "link.trace_down": "none-such", "link.trace_up": "none-such", "link.hop_down": "none-such",
    "link.hop_up": "none-such", "tcp.congestion_control": "reno", "tcp.sysctl": {"tcp_sack": 0},
    "tcp.route": {"quickack": 1}, "traffic": "call", "server.prices": "shukla-2006",
    "start_spread_ms": 5000.0, "server_think_ms": 50.0, "link.delay_up_ms": 0.5,
    "tcp.requests_per_connection": 1, "link.path_mtu_bytes": 900, "idle_s": 86400.0,
}  # fmt: skip
"""Values of knobs that are texts, or that half or twice as much would not move."""
MEANINGLESS = {
    *("link.delay_distribution", "link.reorder_ms", "link.trace_end", "link.trace_phase"),
    *("link.path_mtu_discovery", "early_data_at", "think_spread_pct", "command", "tcp.cookies"),
}
"""What has no meaning without another knob, which has a check of its own."""


@pytest.fixture(scope="module")
def loads(house: House) -> dict[str, tuple[Record, Path]]:
    house.take("wikipedia", "wikipedia-h2")
    done = {}
    for name, knobs in BASES.items():
        if "page" in knobs:
            ran = house.run(**knobs, rtt_ms=20)
            record, folder = ran.records[0], ran.folder
        else:
            config, folder = house.folder / "load.toml", house.folder / "results" / name
            config.write_text('kind = "server_load"\n[arrivals]\nwarm_up_s = 1\nduration_s = 1\n')
            sets = [w for key, to in knobs.items() for w in ("--set", f"{key}={to}")]
            house.command("run", str(config), *sets, "--set", "rtt_ms=2", "-o", str(folder))
            (record,) = read_records(folder)
        assert record.outcome == "ok", (name, record.reason)
        done[name] = record, folder / "trials" / record.trial_id
    return done


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
    raw = RawResult("ended", "", "", None, out / OBSERVATION_FILE, None, {})
    try:
        return conclude(trial, raw, out, record.environment, 1)
    finally:
        shutil.rmtree(out)


@pytest.mark.parametrize("plain", ["page", "server"])
def test_nobody_acts_on_any_knob(
    loads: dict[str, tuple[Record, Path]], plain: str, tmp_path: Path
) -> None:
    believed = []
    for knob in declared(type(loads[plain][0].trial.condition)):
        path = (*knob.table, knob.name)
        name = ".".join(path)
        if knob.default is MISSING or name in MEANINGLESS or knob.knob.shown == NO_PACKET:
            continue
        if name == "tcp.requests_per_connection" and plain == "server":
            continue
        record, left = loads[ELSEWHERE.get(name, plain)]
        now = record.trial.condition
        for part in path:
            now = getattr(now, part)
        values = list(others(knob, now))
        assert values, f"{name} needs a value in VALUES"
        for value in values:
            judged = judge(record, left, path, value, tmp_path / "out")
            if judged.outcome == "ok":
                believed.append(f"{name} = {value}")
    assert believed == [], believed
