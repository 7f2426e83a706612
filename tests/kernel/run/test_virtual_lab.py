"""The lab inside the virtual kernel against closed-form theory: link, and one cold fetch."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from testbed.model import LabReading, LinkSpec
from testbed.model.line import serialisation_ms
from tests.kernel.guests import Guests

CALIBRATE = """\
from dataclasses import asdict
from testbed.lab.laboratory import open_lab
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec
with open_lab(Condition("p", "c", LinkSpec(**{link})), 1, mechanisms=ACTING) as lab:
    leave(lab=asdict(lab.reading))
"""
FETCH = """\
import socket, time
from testbed.lab.laboratory import open_lab
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec, TcpSpec
from testbed.archive.reading import Archive, Entry
from testbed.server.listeners import lab_listeners
from testbed.server.nginx import ServerOptions, serve
from testbed.server.think import Think
Path("/tmp/body").write_bytes(bytes({body}))
entry = Entry(
    id="0", url="http://a/", scheme="http", host="a", port=80, path="/", method="GET", status=200,
    protocol="http/1.1", headers=(), headers_size={head}, body_size={body}, decoded_size={body},
    request_body_size=0, mime="", body=Path("/tmp/body"), location=None, parent=None, carrier=None,
    how="root", gap_ms=None, start_ms=None, dur_ms=None, depth=0, after_load=False,
)
archive = Archive("a", "a", entry.url, (entry,), "")
condition = Condition("p", "c", LinkSpec(**{link}), TcpSpec(tfo={tfo}))
with open_lab(condition, 1, mechanisms=ACTING) as lab, serve(
    lab.topology.server, archive, lab_listeners(archive, {{"a": ("10.10.0.1",)}}, "as-recorded"),
    Path("/tmp/nginx"), ServerOptions(think={think}),
):
    lab.prepare(1)
    time.sleep(2)
    with lab.topology.client.entered():
        client = socket.socket()
    request, size = {request!r}, 0
    started = time.monotonic_ns()
    if {tfo}:
        client.sendto(request, socket.MSG_FASTOPEN, ("10.10.0.1", 80))
    else:
        client.connect(("10.10.0.1", 80))
        client.sendall(request)
    while size < {head} + {body}:
        size += len(client.recv(65536))
    leave(took_ns=time.monotonic_ns() - started, size=size, problems=lab.reading.problems)
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nX-Longer: 12345678901234\r\n\r\n"
HEAD_BYTES, BODY_BYTES = 237, 10_000
# IP and TCP headers (RFC 9293, RFC 7323): 20 + 20 + 12 of a timestamp; a SYN has 20 of options,
# and 12 more with a cookie of 8 bytes.
DATA_HEADER, SYN_HEADER, SYN_COOKIE_HEADER = 52, 60, 72
SEGMENT_BYTES = 1448


def fetch_ms(guests: Guests, link: dict[str, Any], tfo: bool, think: str = "None") -> float:
    """How long a cold fetch takes from a server that thinks."""
    sizes = {"head": HEAD_BYTES, "body": BODY_BYTES}
    asked = FETCH.format(link=link, tfo=tfo, request=REQUEST, think=think, **sizes)
    seen = guests.observe(asked)
    assert (seen["size"], seen["problems"]) == (10_237, [])
    return float(seen["took_ns"]) / 1e6


def theory_ms(spec: LinkSpec, tfo: bool) -> float:
    """Time of one fetch over a new connection, by the serialisation of its packets."""

    def up(ip_bytes: int) -> float:
        return serialisation_ms(ip_bytes, spec.up_kbit, spec.framing_bytes)

    def down(ip_bytes: int) -> float:
        return serialisation_ms(ip_bytes, spec.down_kbit, spec.framing_bytes)

    left, answer = HEAD_BYTES + BODY_BYTES, 0.0
    while left:
        segment = min(left, SEGMENT_BYTES)
        answer += down(DATA_HEADER + segment)
        left -= segment
    if tfo:
        return spec.rtt_ms + up(SYN_COOKIE_HEADER + len(REQUEST)) + down(SYN_HEADER) + answer
    opening = up(SYN_HEADER) + down(SYN_HEADER)
    asking = up(DATA_HEADER) + up(DATA_HEADER + len(REQUEST))
    # A new connection's first data is acknowledged at once, before the server has read it.
    asking += down(DATA_HEADER)
    return 2 * spec.rtt_ms + opening + asking + answer


def test_theory_is_what_was_summed_by_hand() -> None:
    spec = LinkSpec(rtt_ms=0.0, framing_bytes=14)
    assert len(REQUEST) == 53
    assert [round(theory_ms(spec, tfo), 3) for tfo in (False, True)] == [29.904, 26.022]


@pytest.mark.guest
@pytest.mark.parametrize(
    "link",
    [{"rtt_ms": 20.0}, {"rtt_ms": 100.0}, {"rtt_ms": 200.0}, {"rtt_ms": 20.0, "framing_bytes": 14},
     {"rtt_ms": 33.334, "down_kbit": 10_000, "up_kbit": 1000, "buffer_bytes": 30_000},
     {"rtt_ms": 20.0, "loss_pct": 5.0}],
)  # fmt: skip
def test_the_link_is_as_asked(guests: Guests, link: dict[str, Any]) -> None:
    seen = guests.observe(CALIBRATE.format(link=link))
    lab = TypeAdapter(LabReading).validate_python(seen["lab"])
    assert lab.problems == ()
    asked_pct = link.get("loss_pct", 0.0)
    assert float(lab.knobs["up.loss_pct"]) == pytest.approx(asked_pct, abs=1e-4)
    names = ["rtt", "down_rate", "down_buffer", "up_rate", "up_buffer"]
    assert [m.name for m in lab.measurements] == names + ["down_loss", "up_loss"] * bool(asked_pct)
    for measurement in lab.measurements[: len(names)]:
        assert abs(measurement.error_pct) <= 0.1, measurement


@pytest.mark.guest
@pytest.mark.nightly(but="^100.0-")
@pytest.mark.parametrize("framing", [0, 14])
@pytest.mark.parametrize("tfo", [False, True])
@pytest.mark.parametrize("rtt_ms", [20.0, 100.0, 200.0])
def test_a_cold_fetch_takes_what_theory_says(
    guests: Guests, rtt_ms: float, tfo: bool, framing: int
) -> None:
    link = {"rtt_ms": rtt_ms, "framing_bytes": framing}
    expected_ms = theory_ms(LinkSpec(**link), tfo)  # type: ignore[arg-type]
    assert abs(fetch_ms(guests, link, tfo) - expected_ms) < 0.010


@pytest.mark.guest
@pytest.mark.parametrize(("tfo", "think_ms"), [(False, 50), (True, 50), (True, 1000)])
def test_a_server_that_thinks_answers_so_much_later(
    guests: Guests, tfo: bool, think_ms: int
) -> None:
    took_ms = fetch_ms(guests, {"rtt_ms": 100.0}, tfo, f"Think({think_ms})")
    thought_ms = took_ms - theory_ms(LinkSpec(rtt_ms=100.0), tfo)
    # nginx counts in whole milliseconds of a clock that it reads once for all events of a moment.
    assert abs(thought_ms - think_ms) <= 1.0
