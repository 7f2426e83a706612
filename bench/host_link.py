"""Link of the lab on the host's kernel, in real time: goodput, round trips, set-up time."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from bench.result import Result, judge
from bench.work import Work
from testbed.base import places
from testbed.kernel.build.native import ensure_native
from testbed.lab.calibration import rtt_theory_ms
from testbed.lab.laboratory import HOST, Lab, open_lab
from testbed.lab.link.backend import choose_backend
from testbed.lab.link.protocol import LinkBackend
from testbed.lab.real_time_calibration import ping
from testbed.lab.tcp import set_knobs
from testbed.lab.topology import SERVER_ADDRESS, open_topology
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec, TcpSpec
from testbed.model.line import serialisation_ms

LEAST_GOODPUT = 0.995
MOST_MEAN_MS, MOST_P99_MS = 0.3, 1.0
MOST_LAB_S = 0.5
# 256 kbit/s have no room for the acknowledgements of 20 Mbit/s.
LINKS = (LinkSpec(), LinkSpec(down_kbit=20_000, up_kbit=2000))
ROUND_TRIPS_MS = (20.0, 100.0, 200.0)
SEGMENT_BYTES, SEGMENT_IP_BYTES = 1448, 1500
WARM_UP_S = 1.0
TAG = "ffb-"


@dataclass(frozen=True, slots=True)
class BulkTransfer:
    """One bulk transfer: payload beside what fits on the link, and the lateness of the link."""

    link: LinkSpec
    goodput_kbit: float
    theory_kbit: float
    worst_lateness_ms: float | None
    link_cpu_s: float | None

    @property
    def share(self) -> float:
        """Of the theory."""
        return self.goodput_kbit / self.theory_kbit


@contextmanager
def _lab(spec: LinkSpec) -> Iterator[Lab]:
    with open_lab(Condition("p", "c", spec), 1, TAG, HOST, backend(), mechanisms=ACTING) as lab:
        yield lab


def backend() -> LinkBackend:
    """Return what emulates the link on this machine.

    Raises:
        MissingError: nothing can.
    """
    return choose_backend(ensure_native(places.cache(), print) / "link")


def measure_goodput(work: Work) -> Result:
    """Measure a bulk transfer at 4 and at 20 Mbit/s."""
    seconds = 3.0 if work.quick else 10.0
    flows = [_transfer(spec, seconds) for spec in LINKS]
    shares = "; ".join(f"{f.share:.4f} of {f.link.down_kbit / 1000:g} Mbit/s" for f in flows)
    return Result(
        "host-goodput", f"at least {LEAST_GOODPUT:g} of theory", shares,
        judge(all(flow.share >= LEAST_GOODPUT for flow in flows), in_full=not work.quick),
        len(flows),
        f"one TCP connection for {seconds:g} s after {WARM_UP_S:g} s, payload at the client; "
        f"theory: segments of {SEGMENT_BYTES} in packets of {SEGMENT_IP_BYTES} bytes",
        real_time=True,
        details={f"{flow.link.down_kbit}": asdict(flow) for flow in flows},
    )  # fmt: skip


def _transfer(spec: LinkSpec, seconds: float) -> BulkTransfer:
    with _lab(spec) as lab:
        goodput_kbit = _read_goodput_kbit(lab, seconds)
        report = lab.read_link()
    each_ms = serialisation_ms(SEGMENT_IP_BYTES, spec.down_kbit, spec.framing_bytes)
    theory_kbit = SEGMENT_BYTES * 8 / each_ms
    return BulkTransfer(
        spec, goodput_kbit, theory_kbit, report.worst_lateness_ms, report.link_cpu_s
    )


def _read_goodput_kbit(lab: Lab, seconds: float) -> float:
    with lab.topology.server.entered():
        listener = socket.create_server((SERVER_ADDRESS, 0))
    with lab.topology.client.entered():
        client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    sender = threading.Thread(target=_send_until_closed, args=(server,))
    sender.start()
    with listener, client:
        _receive_for(client, WARM_UP_S)
        received, took_s = _receive_for(client, seconds)
    sender.join()
    return received * 8 / 1000 / took_s


def _send_until_closed(server: socket.socket) -> None:
    with server:
        try:
            while True:
                server.sendall(bytes(1 << 16))
        except ConnectionError:
            return


def _receive_for(client: socket.socket, seconds: float) -> tuple[int, float]:
    """Return the bytes that arrive, and the time in s from the first arrival to the last."""
    client.recv(1 << 16)
    started = time.monotonic()
    received, last = 0, started
    while last - started < seconds:
        received += len(client.recv(1 << 16))
        last = time.monotonic()
    return received, last - started


def measure_round_trips(work: Work) -> Result:
    """Measure many pings over an idle link, at each round trip of the table."""
    count = 100 if work.quick else 1000
    errors: dict[float, list[float]] = {}
    for rtt_ms in ROUND_TRIPS_MS:
        spec = LinkSpec(rtt_ms=rtt_ms)
        with _lab(spec) as lab:
            theory_ms = rtt_theory_ms(spec)
            errors[rtt_ms] = sorted(t - theory_ms for t in ping(lab.topology, spec, count))
    numbers = {rtt_ms: _summarise(errors_ms) for rtt_ms, errors_ms in errors.items()}
    mean = max(abs(summary["mean_ms"]) for summary in numbers.values())
    p99 = max(summary["p99_ms"] for summary in numbers.values())
    complete = all(len(errors_ms) == count for errors_ms in errors.values())
    return Result(
        "host-rtt",
        f"error under {MOST_MEAN_MS:g} ms mean, {MOST_P99_MS:g} ms p99",
        f"mean {mean:.3f} ms, p99 {p99:.3f} ms, the worst of {len(numbers)} round trips",
        judge(complete and mean < MOST_MEAN_MS and p99 < MOST_P99_MS, in_full=not work.quick),
        count,
        "pings of 100 bytes of IP over an idle link at 20, 100 and 200 ms; theory: delay and both "
        "serialisations",
        real_time=True,
        details={f"{rtt_ms:g}": summary for rtt_ms, summary in numbers.items()},
    )


def _summarise(errors_ms: list[float]) -> dict[str, float]:
    if not errors_ms:
        return {"mean_ms": float("inf"), "p99_ms": float("inf"), "worst_ms": float("inf")}
    return {"mean_ms": statistics.fmean(errors_ms),
            "p99_ms": errors_ms[int(0.99 * (len(errors_ms) - 1))],
            "worst_ms": errors_ms[-1]}  # fmt: skip


def measure_lab(work: Work) -> Result:
    """Measure the paper's lab built and taken down, with and without its calibration."""
    times = 3 if work.quick else 10
    chosen = backend()
    bare_s = [_time_bare(chosen) for _ in range(times)]
    whole_s = [_time_whole() for _ in range(times)]
    median_s = statistics.median(bare_s)
    return Result("host-lab", f"under {MOST_LAB_S:g} s",
                  f"{median_s:.3f} s; {statistics.median(whole_s):.3f} s with the calibration",
                  judge(median_s < MOST_LAB_S, in_full=not work.quick), times,
                  f"up and down, {chosen.name} link at RTT 20 ms, knobs set; median",
                  real_time=True, details={"bare_s": bare_s, "calibrated_s": whole_s})  # fmt: skip


def _time_bare(chosen: LinkBackend) -> float:
    spec = LinkSpec()
    started = time.monotonic()
    with (
        open_topology(TAG, spec.mtu_bytes, 1, chosen.wire) as topology,
        chosen.open(topology, spec, 0),
    ):
        set_knobs(topology, TcpSpec())
    return time.monotonic() - started


def _time_whole() -> float:
    started = time.monotonic()
    with _lab(LinkSpec()):
        pass
    return time.monotonic() - started
