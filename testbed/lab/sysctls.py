"""TCP sysctls at both ends: all pinned to the kernel's documented default, all read back.

Whatever of ``net.ipv4.tcp_*`` can move a packet has the value of this table before a trial, unless
a knob says otherwise, and still has it afterwards.  One that a kernel does not have is left out.
Source: ip-sysctl (kernel documentation), Linux 6.1 to 7.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from testbed.base.namespace import Namespace
from testbed.model.canonical import digest

IPV4 = Path("/proc/sys/net/ipv4")
TCP = "net.ipv4.tcp_"
FASTOPEN_KEY = f"{TCP}fastopen_key"

DEFAULTS = {
    "net.core.somaxconn": "4096",
    "net.ipv4.ip_default_ttl": "64",
    "net.ipv4.ip_forward": "0",
    "net.ipv4.ip_local_port_range": "32768 60999",
    "net.ipv4.ip_local_reserved_ports": "",
    "net.ipv4.ip_no_pmtu_disc": "0",
    **{
        TCP + name: value
        for name, value in {
            "abort_on_overflow": "0",
            # Of the virtual kernel alone: see its patch, "manage connections under overload".
            "accept_limit": "0",
            "adv_win_scale": "1",
            "app_win": "31",
            "autocorking": "1",
            "backlog_ack_defer": "1",
            "base_mss": "1024",
            "challenge_ack_limit": "2147483647",
            "child_ehash_entries": "0",
            "comp_sack_delay_ns": "1000000",
            "comp_sack_nr": "44",
            "comp_sack_rtt_percent": "33",
            "dsack": "1",
            "early_demux": "1",
            "early_retrans": "3",
            "ecn": "2",
            "ecn_fallback": "1",
            "ecn_option": "2",
            "ecn_option_beacon": "3",
            "fack": "0",
            "fin_timeout": "60",
            "frto": "2",
            "fwmark_accept": "0",
            "invalid_ratelimit": "500",
            "keepalive_intvl": "75",
            "keepalive_probes": "9",
            "keepalive_time": "7200",
            "l3mdev_accept": "0",
            "max_reordering": "300",
            # These two follow the machine's memory; so many as a guest has.
            "max_syn_backlog": "128",
            "max_tw_buckets": "4096",
            "migrate_req": "0",
            "min_rtt_wlen": "300",
            "min_snd_mss": "48",
            "min_tso_segs": "2",
            "moderate_rcvbuf": "1",
            "mtu_probe_floor": "48",
            "mtu_probing": "0",
            "no_ssthresh_metrics_save": "1",
            "notsent_lowat": "4294967295",
            "orphan_retries": "0",
            "overload": "0",
            "pacing_ca_ratio": "120",
            "pacing_ss_ratio": "200",
            "pingpong_thresh": "1",
            "plb_cong_thresh": "128",
            "plb_enabled": "0",
            "plb_idle_rehash_rounds": "3",
            "plb_rehash_rounds": "12",
            "plb_suspend_rto_sec": "60",
            "probe_interval": "600",
            "probe_threshold": "8",
            "rcvbuf_low_rtt": "1000",
            "recovery": "1",
            "reflect_tos": "0",
            "reordering": "3",
            "retrans_collapse": "1",
            "retries1": "3",
            "retries2": "15",
            "rfc1337": "0",
            # Of the virtual kernel 7.3 alone: 0 is the kernel's own second.
            "rto_init_ms": "0",
            "rto_max_ms": "120000",
            "rto_min_us": "200000",
            "sack": "1",
            "shrink_window": "0",
            "slow_start_after_idle": "1",
            "stdurg": "0",
            "syn_linear_timeouts": "4",
            "syn_retries": "6",
            "synack_retries": "5",
            "syncookies": "1",
            "thin_linear_timeouts": "0",
            "timestamps": "1",
            "tso_rtt_log": "9",
            "tso_win_divisor": "3",
            "tw_reuse": "2",
            "tw_reuse_delay": "1000",
            "window_scaling": "1",
            "workaround_signed_windows": "0",
        }.items()
    },
}
"""What both ends have, by documentation the same in every kernel that has it."""

BY_VERSION = frozenset(
    TCP + name for name in ("comp_sack_slack_ns", "ehash_entries", "limit_output_bytes")
)
"""Defaults that differ from version to version: they stay as the kernel has them, and are told."""

# What the whole kernel has: a module that somebody loads adds to it.
_NOT_OURS = frozenset(
    TCP + name
    for name in ("available_congestion_control", "allowed_congestion_control", "available_ulp")
)
_OF_THE_MACHINE = (
    *("default_qdisc", "dev_weight", "netdev_budget", "netdev_budget_usecs", "netdev_max_backlog"),
    *("netdev_tstamp_prequeue", "rmem_max", "wmem_max"),
)
_DIGEST_LETTERS = 16


def read_sysctls(more: Iterable[str] = ()) -> dict[str, str]:
    """Every sysctl of TCP, the others of ``DEFAULTS``, and ``more``, in this thread's namespace."""
    ipv4 = (f"net.ipv4.{path.name}" for path in IPV4.glob("tcp_*"))
    others = (name for name in DEFAULTS if not name.startswith(TCP))
    return _read(sorted({*ipv4, *others, *more} - _NOT_OURS))


def read_machine_sysctls() -> dict[str, str]:
    """Those that hold for all namespaces; they are only where the machine's own namespace is."""
    return _read([f"net.core.{name}" for name in _OF_THE_MACHINE])


def _read(names: list[str]) -> dict[str, str]:
    """Values with single spaces; what is not there, or cannot be read, is left out."""
    values = {}
    for name in names:
        try:
            file = os.open(f"/proc/sys/{name.replace('.', '/')}", os.O_RDONLY)
        except OSError:
            continue
        try:
            values[name] = " ".join(os.read(file, 4096).decode().split())
        except OSError:
            continue
        finally:
            os.close(file)
    return values


def pin_sysctls(namespace: Namespace, wanted: Mapping[str, str]) -> None:
    """Give ``DEFAULTS`` and ``wanted`` to ``namespace``, writing only what is not so already.

    A default that the kernel lacks is left out, and one that it does not let go of is found by
    reading it back; ``wanted`` has to be there.

    Raises:
        OSError: the kernel has no such sysctl of ``wanted``, or refuses the value.
    """
    with namespace.entered():
        current = read_sysctls()
    for name, value in DEFAULTS.items():
        if name not in wanted and current.get(name, value) != value:
            with suppress(OSError):
                namespace.write_sysctls({name: value})
    namespace.write_sysctls({n: value for n, value in wanted.items() if current.get(n) != value})


def set_sysctls(role: str, namespace: Namespace, wanted: Mapping[str, str]) -> Iterator[str]:
    """Set what a user asks of ``namespace``; yield a sentence for each that did not go.

    Only what is the namespace's own is set: the machine's stays as it was.  Whether the kernel
    keeps a value is found by reading it back.
    """
    kernel = f"this kernel ({os.uname().release})"
    for name, value in wanted.items():
        machine = _read([name])
        with namespace.entered():
            exists = name in _read([name])
        if not exists:
            whose = (
                f"has {name} for the whole machine alone"
                if machine
                else f"has no {name} in a namespace"
            )
            yield f"{role}: {kernel} {whose}; asked was {value!r}"
            continue
        try:
            namespace.write_sysctls({name: value})
        except PermissionError:
            yield f"{role}: {kernel} lets no namespace set {name}; asked was {value!r}"
            continue
        except OSError as error:
            why = os.strerror(error.errno or 0)
            yield f"{role}: {kernel} refuses {value!r} for {name}: {why}"
            continue
        if machine != {name: value} == _read([name]):
            _write_back(machine)
            yield (
                f"{role}: {name} of {kernel} is the whole machine's, which no trial changes; it "
                f"has its old value again, asked was {value!r}"
            )


def _write_back(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        Path(f"/proc/sys/{name.replace('.', '/')}").write_text(value)


def judge_sysctls(sysctls: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each of ``sysctls`` that is not as ``wanted``, or not at its default."""
    expected = {**DEFAULTS, **wanted}
    missing = (f"{name} is not there, asked was {value!r}"
               for name, value in wanted.items() if name not in sysctls)  # fmt: skip
    wrong = (f"{name} is {value!r}, asked was {expected[name]!r}"
             for name, value in sysctls.items() if value != expected.get(name, value))  # fmt: skip
    return (*missing, *wrong)


def describe_sysctls(sysctls: Mapping[str, str]) -> str:
    """All of ``sysctls`` in a line: a digest of names and values, and what no table here says."""
    without_key = {name: value for name, value in sysctls.items() if name != FASTOPEN_KEY}
    own = " ".join(f"{name.removeprefix(TCP)}={without_key[name]}" for name in sorted(without_key)
                   if name in BY_VERSION)  # fmt: skip
    return f"{digest(without_key)[:_DIGEST_LETTERS]} {own}".rstrip()
