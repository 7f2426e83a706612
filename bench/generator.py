"""Load generator on the host's kernel: new connections a second from one core, on time."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bench.pair import LoadPair, open_pair
from bench.result import Result, judge
from bench.work import Work

ASKED_PER_S = 40_000
MOST_LATENESS_US = 1000.0
RATES = (10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 45_000, 50_000)
SECONDS, QUICK_SECONDS = 5.0, 2.0
TAG = "ffb-gen-"


@dataclass(frozen=True, slots=True)
class Held:
    """A measured rate: starts and answers a second, lateness, and limits that were reached."""

    rate: int
    started_per_s: float
    answered_per_s: float
    lateness_p99_us: float
    us_per_connection: float
    lacked: tuple[str, ...]

    @property
    def is_held(self) -> bool:
        """Whether the generator kept the rate, even if connections failed."""
        return not self.lacked and self.lateness_p99_us < MOST_LATENESS_US


def measure(work: Work) -> Result:
    """Measure rising rates until two in a row are not held."""
    seconds = QUICK_SECONDS if work.quick else SECONDS
    measured: list[Held] = []
    with open_pair(TAG, card=True) as pair:
        for rate in RATES:
            measured.append(_measure(pair, work, rate, seconds))
            if len(measured) > 1 and not any(held.is_held for held in measured[-2:]):
                break
    return judge_rates(measured, in_full=not work.quick and work.machine.idle)


def _measure(pair: LoadPair, work: Work, rate: int, seconds: float) -> Held:
    log = work.scratch / f"generator-{rate}.json"
    with pair.serving(log, "event-server", 900):
        # A limit of its own would end it with another status, and say no more.
        report = pair.generate(seconds, rate=rate, warm_up_ms=500, close="rst")
    return Held(rate, report["started_per_s"], report["completed_per_s"],
                report["lateness_us"]["p99"], report["processor_us_per_connection"],
                tuple(report["own_limits"]))  # fmt: skip


def judge_rates(measured: list[Held], *, in_full: bool) -> Result:
    """Return the highest rate that the generator held, beside the target."""
    sustained = [rate for rate in measured if rate.is_held]
    best = sustained[-1] if sustained else measured[0]
    words = f"{best.started_per_s:,.0f}/s, lateness p99 {best.lateness_p99_us:.0f} us"
    return Result(
        name="generator",
        asked=f"{ASKED_PER_S:,} connections/s from one core, lateness p99 under 1 ms",
        measured=words if sustained else f"not even {measured[0].rate:,}/s held: {words}",
        verdict=judge(bool(sustained) and best.rate >= ASKED_PER_S, in_full=in_full),
        n=len(measured),
        how="veth, a processor each, a kernel thread takes the server's packets; rising rates, the "
        f"highest that was held; {best.us_per_connection:.1f} us of the generator's processor time "
        "for each connection",
        real_time=True,
        details={"rates": [asdict(rate) for rate in measured]},
    )
