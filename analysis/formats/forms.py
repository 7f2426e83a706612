"""Forms of test results for other programs, by the names that options have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from analysis.formats.kcidb import write_kcidb
from analysis.formats.netdev import write_netdev
from analysis.formats.suites import Suite, write_ktap, write_tap13

FORMS: Mapping[str, Callable[[Sequence[Suite]], str]] = {
    "ktap": write_ktap,
    "tap13": write_tap13,
    "netdev": write_netdev,
    "kcidb": write_kcidb,
}
FORMS_HELP = (
    "KTAP as kernel tests print it, TAP 13 as netdev's CI reads it, a run for its results.json, or "
    "KCIDB's JSON"
)
