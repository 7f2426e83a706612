"""What shows that each knob off its default was performed: a check, a reading, or nothing yet.

Knobs of a wing's kind of trial say it themselves (``Knob.shown``).  Any other that is not in this
table makes trials unproven where it is set: nobody would notice if no code acted on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.model.knob import changed
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

CALIBRATED = "the lab's calibration, held against theory"
READ_BACK = "what the kernel says of it, read back after it was set and after the load"
TRIAL = "the trial and the page's digest, which the guest writes down"
NOTHING = ""
"""Nothing shows it yet: a guest that ignored it would not be found."""


def _all(how: str, *knobs: str) -> dict[str, str]:
    return dict.fromkeys(knobs, how)


SHOWN: Mapping[str, str] = {
    **_all(TRIAL, "page", "client", "link.profile"),
    **_all(CALIBRATED, "link.rtt_ms", "link.delay_up_ms", "link.down_kbit", "link.up_kbit",
           "link.buffer_bytes", "link.framing_bytes"),
    **_all(READ_BACK, "link.loss_pct", "link.loss_up_pct", "link.loss_down_pct",
           "link.loss_bursts", "link.delay_jitter_ms", "link.delay_distribution",
           "link.reorder_pct", "link.reorder_ms", "link.duplicate_pct", "link.corrupt_pct",
           "link.qdisc", "link.qdisc_down", "link.qdisc_up", "link.trace_end", "link.trace_phase",
           "link.gso", "link.gro", "tcp.congestion_control", "tcp.sysctl", "tcp.route"),
    **_all("line", "link.changes", "link.trace_down", "link.trace_up", "link.hop_down",
           "link.hop_up"),
    **_all("path mtu", "link.path_mtu_bytes", "link.path_mtu_discovery"),
    "link.mtu_bytes": "segment size",
    "link.ip": "ip",
    **_all("fast open", "tcp.tfo", "tcp.cookies"),
    "tcp.initcwnd_segments": "initial window",
    "tcp.requests_per_connection": "requests per connection",
    "quic.initcwnd_packets": "initial window of QUIC",
    "quic.quic_control": "the server's own account of its stack",
    "dns": "names",
    **_all("tls version", "tls_version"),
    **_all("tls handshakes", "tls_resumption", "early_data", "early_data_at", "key_share",
           "protocol", "certificates"),
    **_all("visits", "visits", "idle_s"),
    "traffic": "neighbours",
    **_all("think time", "server_think_ms", "think_spread_pct"),
    "web_server": "the server's own account of its stack",
    **_all("output kept", "command", "peer", "at"),
    "start_spread_ms": "start",
    "jitter": "price of computing",
    **_all(NOTHING, "think_time", "randomness", "allow_misses", "between"),
}  # fmt: skip


@check("settings", "capture")
def check_settings_shown(seen: Evidence) -> Iterator[str]:
    """Each setting off its default is one of which something shows whether it was performed."""
    for each, value in changed(seen.trial.condition):
        knob = ".".join((*each.table, each.name))
        if knob not in SHOWN and each.knob.shown is None:
            yield f"nothing shows that {knob} = {value} was performed"
