"""Replay of the shipped recipes on loopback: same requests, same bytes, same order."""

from __future__ import annotations

from bench.result import Result, judge
from bench.work import Work
from testbed.base import log, places
from testbed.pages.catalogue import list_pages, read_kind
from wings.pages.recipe.compare import ReplayComparison, compare_recipe

MAX_BYTES_ERROR_PCT = 0.1
# One small page in both forms, where --quick was asked.
QUICK = ("apache-docs", "apache-docs-h2")

_log = log.logger("testbed.bench")


def measure(work: Work) -> Result:
    """Measure every recipe once, on plain HTTP and on HTTP/2."""
    recipes = [f for f in list_pages(places.PAGES) if read_kind(f) == "recipe"]
    chosen = [folder for folder in recipes if not work.quick or folder.name in QUICK]
    comparisons = [compare_recipe(folder, places.cache(), _log.info) for folder in chosen]
    same_pages = sum(1 for comparison in comparisons if comparison.same)
    worst_pct = max((abs(c.bytes_error_pct) for c in comparisons), default=0.0)
    least_pct = min((c.exact_pct for c in comparisons), default=0.0)
    met = same_pages == len(comparisons) > 0 and worst_pct <= MAX_BYTES_ERROR_PCT
    return Result(
        "pages-replay",
        f"100 % exact, bytes within {MAX_BYTES_ERROR_PCT} %, same requests in the same order",
        f"{same_pages} of {len(comparisons)} pages the same; {least_pct:g} % exact, "
        f"bytes within {worst_pct:.4f} %",
        judge(met, in_full=not work.quick),
        1,
        "twenty pages, HTTP/1.1 and HTTP/2: recorded from loopback, replayed, recorded again",
        details={comparison.page: describe(comparison) for comparison in comparisons},
    )


def describe(comparison: ReplayComparison) -> dict[str, object]:
    """Return one page's numbers."""
    return {
        "requests": comparison.requests,
        "exact_pct": comparison.exact_pct,
        "recorded_bytes": comparison.recorded_bytes,
        "replayed_bytes": comparison.replayed_bytes,
        "missing": comparison.missing,
        "extra": comparison.extra,
        "changed": comparison.changed,
        "disordered": comparison.disordered,
    }
