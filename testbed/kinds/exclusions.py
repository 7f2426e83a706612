"""Table of exclusions: settings that no trial can have together, one row for each pair, and why.

What bounds one setting by the number in another (a jitter by its delay, a buffer by a packet) is
in ``testbed.model.impairments`` and in the rules of a kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from testbed.kinds import KINDS
from testbed.kinds.experiment_file import ExperimentFile, KeyPath, toml_text
from testbed.model import Condition, LinkSpec, QuicSpec, Spec, TcpSpec, kind_of


class Exclusion(NamedTuple):
    """A knob, by its path in an experiment file, and what it cannot stand beside.

    ``beside`` is another knob, the ``kind`` of trial or the ``kernel``.  ``value`` and ``other``
    are one value each, or say which values; left out: any but the default.
    """

    knob: str
    beside: str
    why: str
    value: Any = None
    other: Any = None


_DEFAULTS: dict[str, Any] = {
    **{each.name: each.default for each in fields(Condition)},
    **{f"link.{each.name}": each.default for each in fields(LinkSpec)},
    **{f"tcp.{each.name}": each.default for each in fields(TcpSpec)},
    **{f"quic.{each.name}": each.default for each in fields(QuicSpec)},
}
_HOPS = ("hop_down", "hop_up")
_TAKE_QUIC, _TLS_1_3 = 'set web_server = "nginx-quic"', "leave tls_version out"
_NO_HOP = "neighbours are not behind a last hop, and nothing is proven of both"


def _real_time(kernel: str) -> bool:
    return kernel == "host"


def _no_page_load(kind: str) -> bool:
    return kind != "page_load"


TABLE: tuple[Exclusion, ...] = (
    # The link.
    Exclusion("link.loss_bursts", "link.loss_pct",
              "takes the place of loss_pct, set as well; leave one of them out"),
    *(Exclusion(f"link.{knob}", f"link.{trace}",
                "a link with a trace has none; leave one of the two out")
      for knob in ("delay_jitter_ms", "reorder_pct") for trace in ("trace_down", "trace_up")),
    *(Exclusion(f"link.{hop}", f"link.{knob}",
                f"a last hop has no {knob} beside it; leave one of the two out")
      for hop in _HOPS
      for knob in ("changes", "corrupt_pct", "delay_jitter_ms", "duplicate_pct", "gso", "ip",
                   "path_mtu_bytes", "reorder_pct", "trace_down", "trace_up")),
    Exclusion("link.corrupt_pct", "link.ip",
              "whose damage is seen over IPv4 alone; leave it out, or ip"),
    Exclusion("link.path_mtu_bytes", "link.ip",
              "routers tell of it over IPv4 alone here; leave it out, or ip"),
    Exclusion("link.path_mtu_bytes", "link.corrupt_pct",
              "what is told of it may arrive damaged; leave it out, or corrupt_pct"),
    # The kind of trial.
    Exclusion("link.changes", "kind", "only page loads have a start to count from; leave it out",
              other=_no_page_load),
    *(Exclusion(f"link.{knob}", "kind", "only page loads prove what it does; leave it out",
                other=_no_page_load) for knob in ("path_mtu_bytes", *_HOPS)),
    *(Exclusion(knob, "kind", why, other=kind.name)
      for kind in KINDS.values() for knob, why in kind.exclusions.items()),
    # The kernel.
    *(Exclusion(f"link.{knob}", "kernel",
                "in real time no capture would show the wire; leave it out", other=_real_time)
      for knob in ("gso", "gro")),
    *(Exclusion(f"link.{knob}", "kernel",
                "takes virtual time; leave it out, or run on --kernel virtual", other=_real_time)
      for knob in ("changes", "ip", *_HOPS)),
    Exclusion("traffic", "kernel",
              'neighbours are in virtual time alone; take kernel.name = "virtual"',
              other=_real_time),
    # Neighbours.
    Exclusion("link.ip", "traffic", "neighbours are on IPv4 alone; leave it out, or traffic"),
    Exclusion("link.path_mtu_bytes", "traffic",
              "whose packets were too long nobody counts on a line with neighbours; leave it out, "
              "or traffic"),
    *(Exclusion(f"link.{hop}", "traffic", f"{_NO_HOP}; leave it out, or traffic") for hop in _HOPS),
    Exclusion("traffic", "at",
              "neighbours begin with a command at an end of the link, and one outside begins at "
              'once; take at = "client" or "server"', other="lab"),
    # Several visits.
    *(Exclusion(knob, "visits",
                "its times are those of one load, and there are several visits; leave one of them "
                "out")
      for knob in ("traffic", "link.changes", "link.trace_down", "link.trace_up",
                   *(f"link.{hop}" for hop in _HOPS))),
    # Web servers, protocols and TLS.
    *(Exclusion("web_server", "protocol", 'it speaks HTTP/3 alone; set protocol = "h3"',
                "aioquic", other) for other in ("as-recorded", "h1", "h2")),
    Exclusion("key_share", "web_server", f"aioquic does not know the group; {_TAKE_QUIC}",
              "x25519mlkem768", "aioquic"),
    Exclusion("key_share", "web_server", f"the root's nginx does not know the group; {_TAKE_QUIC}",
              "x25519mlkem768", "nginx"),
    Exclusion("key_share", "tls_version", f"TLS 1.3 alone has the group; {_TLS_1_3}",
              "x25519mlkem768", "1.2"),
    Exclusion("protocol", "web_server", f"the root's nginx has none; {_TAKE_QUIC}", "h3", "nginx"),
    Exclusion("protocol", "tls_version", f"QUIC has TLS 1.3 alone (RFC 9001); {_TLS_1_3}",
              "h3", "1.2"),
    Exclusion("protocol", "link.ip",
              'a browser tries the other address over TCP alone (RFC 8305); take ip = "dual"',
              "h3", "dual-broken"),
    Exclusion("protocol", "tcp.tfo", "no connection is TCP's; leave tcp.tfo out", "h3", True),
    Exclusion("tcp.requests_per_connection", "protocol",
              "it is held against TCP connections, and there are none; leave it out", other="h3"),
    Exclusion("server_think", "server_think_ms",
              "a recorded wait takes its place; leave one of them out, or set think_by_host"),
    Exclusion("early_data", "tls_version", f"TLS 1.3 alone has early data; {_TLS_1_3}",
              True, "1.2"),
    Exclusion("early_data", "tls_resumption",
              "only a resumed session has early data; set tls_resumption = true", True, False),
    *(Exclusion(f"quic.{each.name}", "web_server",
                'its QUIC cannot be set; set web_server = "aioquic"', other=other)
      for each in fields(QuicSpec) for other in ("nginx", "nginx-quic")),
)  # fmt: skip


def find_exclusions(conditions: Iterable[Spec], kernel: str, file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each row that a condition of ``file`` has both settings of, once."""
    conditions = tuple(conditions)
    for row in TABLE:
        path = tuple(row.knob.split("."))
        at_first = conditions[:1] if _is_fixed(file, path) else conditions
        if not any(_meets(row.knob, row.value, each, kernel) for each in at_first):
            continue
        met = {
            (_value(row.knob, each, kernel), _value(row.beside, each, kernel))
            for each in conditions
            if _meets(row.knob, row.value, each, kernel)
            and _meets(row.beside, row.other, each, kernel)
        }
        said = (_say(row, file.place(path), *pair) for pair in sorted(met, key=str))
        yield from dict.fromkeys(said)


def _is_fixed(file: ExperimentFile, path: KeyPath) -> bool:
    return not (file.is_swept(path[-1]) or file.is_swept("profile"))


def _say(row: Exclusion, place: str, value: Any, other: Any) -> str:
    if row.other is None or callable(row.other) or row.beside == "kind":
        return f"{place}: {row.why}"
    return f"{place}: {toml_text(value)} beside {row.beside} = {toml_text(other)}: {row.why}"


def _value(path: str, condition: Spec, kernel: str) -> Any:
    """Return what a condition has at a path; its default, where its kind has no such knob."""
    if path in ("kernel", "kind"):
        return kernel if path == "kernel" else kind_of(condition)
    node: Any = condition
    for part in path.split("."):
        if not hasattr(node, part):
            return _DEFAULTS.get(path)
        node = getattr(node, part)
    return node


def _meets(path: str, wanted: Any, condition: Spec, kernel: str) -> bool:
    value = _value(path, condition, kernel)
    if wanted is None:
        return value not in (_DEFAULTS.get(path), None)
    return bool(wanted(value)) if callable(wanted) else bool(value == wanted)
