"""The two programs of a load on a server: the event server, and the generator of connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.model import Trial
from wings.server_loads.account import ServerAccount, read_account
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import ServerLoad

END_S = 120.0
GRACE_S = 30.0
"""How much longer than its own bounds a generator may take, before it is ended."""
FAST_OPEN_QUEUE = 4096
ITS_OWN_LIMIT = 3
_OTHER_ENDS = ("cut_short", "invalid", "failed", "unopened", "unfinished")


def server_argv(
    program: Path,
    address: str,
    load: ServerLoad,
    backlog: int,
    prices: Mapping[str, int],
    processors: tuple[int, ...] = (),
) -> tuple[str, ...]:
    """Return the command of the event server; without ``prices`` its processor does the work."""
    spec = load.server
    given = {
        "listen": address,
        "backlog": backlog,
        "response-bytes": spec.response_bytes,
        # As nginx does: what was accepted is served before more is.
        "accepts-at-once": 1,
        "fast-open": FAST_OPEN_QUEUE if load.tcp.tfo else 0,
        "work-ns": 0 if prices else round(spec.request_cost_us * 1000),
        **{f"price-{name}-ns": price for name, price in prices.items()},
        "workers": spec.workers,
        **({"processors": ",".join(map(str, processors))} if processors else {}),
    }
    return (str(program), *_options(given))


def generator_argv(
    program: Path, address: str, trial: Trial, processor: int | None = None
) -> tuple[str, ...]:
    """Return the command of the generator, which runs on ``processor``, or on any."""
    load = trial.condition_as(ServerLoad)
    arrivals = load.arrivals
    is_open = arrivals.loop == "open"
    listed_ms = (str(round(s * 1000)) for s in arrivals.syn_timers_s if arrivals.syn_timeouts_s)
    given = {
        "target": address,
        **({"rate": arrivals.rate_per_s} if is_open else {"clients": arrivals.clients}),
        "arrivals": arrivals.spacing,
        "seed": trial.seed,
        "warm-up-ms": arrivals.warm_up_s * 1000,
        "duration-ms": arrivals.duration_s * 1000,
        "cool-down-ms": arrivals.cool_down_s * 1000,
        "burst-ms": round(arrivals.burst_s * 1000),
        "every-ms": round(arrivals.every_s * 1000),
        "base-rate": arrivals.base_rate_per_s,
        "timeout-ms": round(arrivals.patience_s * 1000),
        "http": arrivals.http_version,
        "close": arrivals.ending,
        "retry-refused": arrivals.retries_refused,
        "fast-open": int(load.tcp.tfo),
        "syn-timeouts-ms": ",".join(listed_ms),
        "processor": -1 if processor is None else processor,
    }
    return (str(program), *_options(given))


def _options(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        yield f"--{name}"
        yield str(value)


@contextmanager
def serving(
    namespace: Namespace, argv: tuple[str, ...], log: Path
) -> Iterator[Callable[[], ServerAccount]]:
    """Run the event server inside ``namespace``; what is yielded ends it and returns its account.

    Raises:
        LabError: it did not start, or not end as it should; ``log`` says why.
    """
    with (
        log.open("wb") as output,
        proc.started((*namespace.prefix, *argv), stdout=output, stderr=output) as child,
    ):
        if not proc.becomes_ready(child, lambda: b"listening" in log.read_bytes()):
            raise LabError(f"the server did not start: {log.read_text(errors='replace')}")

        def end() -> ServerAccount:
            child.terminate()
            status = child.wait(END_S)
            if status not in (0, ITS_OWN_LIMIT):
                raise LabError(
                    f"the server ended with status {status}: {log.read_text(errors='replace')}"
                )
            return read_account(json.loads(log.read_text().splitlines()[-1])["workers"])

        yield end


def generate(namespace: Namespace, argv: tuple[str, ...], trial: Trial) -> dict[str, Any]:
    """Run the generator inside ``namespace`` to its end and return its report.

    Raises:
        LabError: it left none.
    """
    arrivals = trial.condition_as(ServerLoad).arrivals
    bound_s = arrivals.lasts_s + arrivals.patience_s + GRACE_S
    done = proc.run((*namespace.prefix, *argv), check=False, timeout_s=bound_s)
    if done.returncode not in (0, ITS_OWN_LIMIT):
        said = done.stderr.strip()[-2000:]
        raise LabError(f"the generator ended with status {done.returncode}: {said}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def gather_load(
    report: Mapping[str, Any],
    account: ServerAccount,
    prices: dict[str, int],
    server_cpu_pct: float | None = None,
) -> ServedLoad:
    """Return the measurement of a generator's ``report`` and the server's ``account``.

    In real time ``server_cpu_pct`` is what the machine counted.
    """
    ends, whole = report["connections"], report["seconds"]
    warm_up, seconds = report["warm_up_ms"] // 1000, report["duration_ms"] // 1000
    measured = whole[warm_up : warm_up + seconds]
    response, started = report["response_us"] or {}, ends["started"]
    since_ns = report["began_ns"] + report["warm_up_ms"] * 1_000_000
    until_ns = since_ns + report["duration_ms"] * 1_000_000
    if server_cpu_pct is None:
        server_cpu_pct = account.busy_pct(since_ns, until_ns)
    return ServedLoad(
        seconds=seconds,
        started=started,
        answered=ends["completed"],
        refused=ends["refused"],
        reset=ends["reset"],
        timed_out=ends["timed_out"],
        broken=sum(ends[name] for name in _OTHER_ENDS),
        retries=report["retries"],
        established=report["established"],
        syn_retransmissions=report["syn_retransmissions"],
        replies_per_s=sum(second["completed"] for second in measured) / seconds,
        failed_pct=100 * (started - ends["completed"]) / started if started else 0.0,
        response_mean_ms=_in_ms(response.get("mean")),
        response_p50_ms=_in_ms(response.get("p50")),
        response_p99_ms=_in_ms(response.get("p99")),
        response_halves_ms=tuple(map(_in_ms, report["response_halves_us"])),
        lateness_p99_us=(report["lateness_us"] or {"p99": 0.0})["p99"],
        generator_cpu_s=report["processor_us"] / 1e6,
        all_started=sum(second["started"] for second in whole),
        all_answered=sum(second["completed"] for second in whole),
        server_cpu_pct=server_cpu_pct,
        limits=tuple(report["own_limits"]),
        server=account.counts,
        prices_ns=prices,
    )


def _in_ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us / 1000
