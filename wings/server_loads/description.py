"""Description of loads on a server: what those ask who plan, run, judge and keep them."""

from __future__ import annotations

from testbed.kinds.kind import Kind, Relative, describe_draws
from testbed.model import CAPTURE_FILE
from wings.server_loads.measurement import HISTOGRAMS_FILE, ServedLoad
from wings.server_loads.spec import RATE, RelativeRate, ServerLoad, product

_ANOTHER = "another knob sets it; use "
_UNPROVEN = "what a server under load did cannot be proven with it; leave it out"
_OWN = "clients that generate load need one of their own; set it at the server alone"


def _no_draw() -> str:
    return f"{describe_draws(ServerLoad)} alone: set one of them, or ask for one repetition"


KIND = Kind(
    name="server_load",
    package=__package__,
    spec=ServerLoad,
    measured=ServedLoad,
    kept_as="served",
    kept_words="What became of the connections of a load on a server; null of others.",
    trial="a server that is put under load",
    no_draw=_no_draw,
    relative=Relative(RelativeRate, RATE, "saturation_per_s", product),
    files=(CAPTURE_FILE, HISTOGRAMS_FILE),
    file_words={
        HISTOGRAMS_FILE: "Of a load on a server: response times, and times to establish a "
        "connection, of each second, as HdrHistogram's log (V2, in ns).",
    },
    has_rules=True,
    host_program="wings.server_loads.mechanisms.program",
    exclusions={
        **dict.fromkeys(("link.delay_jitter_ms", "link.corrupt_pct"), _UNPROVEN),
        "link.ip": "loads on a server are over IPv4 alone; leave it out",
    },
    sysctls={
        "client": {
            "ip_local_port_range": _OWN,
            "tcp_tw_reuse": _OWN,
            "tcp_syn_retries": f"{_ANOTHER}arrivals.syn_retries",
            "tcp_syn_linear_timeouts": f"{_ANOTHER}arrivals.syn_linear_timeouts",
            "tcp_rto_init_ms": f"{_ANOTHER}arrivals.syn_timeout_s",
        },
        "server": {
            "tcp_rto_init_ms": f"{_ANOTHER}arrivals.syn_timeout_s",
            "tcp_abort_on_overflow": f"{_ANOTHER}server.mechanism",
            "tcp_syncookies": f"{_ANOTHER}server.syncookies",
            "tcp_max_syn_backlog": f"{_ANOTHER}server.syn_backlog",
            "core.somaxconn": f"{_ANOTHER}server.listen_backlog",
        },
    },
)
