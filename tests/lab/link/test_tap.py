"""The link between two TAPs: its command, its reports, its end, and what it leaves: nothing."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import LabError, MissingError
from testbed.lab.laboratory import open_lab
from testbed.lab.link.backend import choose_backend
from testbed.lab.link.protocol import Traffic
from testbed.lab.link.scratch import find_unloaded
from testbed.lab.link.tap import Tap, link_argv, parse_claims, parse_report
from testbed.lab.topology import open_topology
from testbed.mechanisms.acting import ACTING
from testbed.model import Condition, LinkSpec
from tests.lab.test_topology import devices, namespaces
from tests.patience import PATIENT

SPEC = LinkSpec(rtt_ms=33.334, loss_pct=1.5, framing_bytes=14)
# A busy machine may be late; what is tested here is something else.
WAY = {
    "packets": 10, "bytes": 1000, "admitted": 14, "dropped": 3, "lost": 2, "overrun": 0,
    "failed": 0, "untimed": 1, "waiting": 2, "late_worst_ns": 70_000, "late_sum_ns": 200_000,
    "late": {"50us": 9, "beyond": 1},
}  # fmt: skip


def processes(program: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "exe").readlink() == program:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_command() -> None:
    assert link_argv(Path("/x/link"), "anear", "afar", SPEC, 7, 50) == (
        *("/x/link", "near-namespace=/run/netns/anear", "near-device=n1"),
        *("far-namespace=/run/netns/afar", "far-device=f0", "down-kbit=4000", "up-kbit=256"),
        *("delay-ns=16667000", "buffer-bytes=131072", "burst-bytes=1540", "mtu-bytes=1500"),
        *("framing-bytes=14", "loss-ppb=15000000", "seed=7", "spin-ns=50000"),
    )


def test_report() -> None:
    text = json.dumps({"down": WAY, "up": {**WAY, "late_worst_ns": 90_000}, "cpu_us": 2500})
    report = parse_report(text, unsent_packets=0)
    assert report.down == report.up == Traffic(delivered=10, dropped=3, lost=2)
    assert (report.dropped_packets, report.stray_packets, report.untimed_packets) == (6, 0, 2)
    assert (report.worst_lateness_ms, report.mean_lateness_ms) == (0.09, 0.02)
    assert report.late_packets == {"50us": 18, "beyond": 2}
    assert report.link_cpu_s == 0.0025


def test_what_vanished_beside_the_link_is_told() -> None:
    text = json.dumps({"down": {**WAY, "overrun": 1}, "up": {**WAY, "failed": 2}, "cpu_us": 0})
    assert parse_report(text, unsent_packets=4).stray_packets == 7


def test_a_report_of_nothing() -> None:
    idle = {**WAY, "packets": 0, "late_sum_ns": 0}
    text = json.dumps({"down": idle, "up": idle, "cpu_us": 0})
    assert parse_report(text, 0).mean_lateness_ms == 0.0


@pytest.mark.parametrize("text", ["link: n1: Operation not permitted\n", "{}\n", "3\n"])
def test_a_complaint_at_the_start_is_passed_on(text: str) -> None:
    with pytest.raises(LabError, match="did not start") as caught:
        parse_claims(text)
    assert text.strip() in str(caught.value)


def test_modules_are_not_loaded_for_us(tmp_path: Path) -> None:
    loaded, loadable = tmp_path / "modules", tmp_path / "modules.dep"
    names = ("veth", "sch_netem")
    assert find_unloaded(names, loaded, loadable) is None
    loadable.write_text("kernel/net/sched/sch_netem.ko.xz: \nkernel/drivers/net/veth.ko:\n")
    loaded.write_text("veth 1 0 - Live 0x0\n")
    problem = find_unloaded(names, loaded, loadable)
    assert problem is not None
    assert "modprobe -a sch_netem" in problem
    loaded.write_text("veth 1 0 - Live 0x0\nsch_netem 1 0 - Live 0x0\n")
    assert find_unloaded(names, loaded, loadable) is None


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    problem = Tap(tmp_path / "link").find_problem()
    assert problem is not None
    assert "is not built" in problem


@pytest.mark.parametrize(
    ("change", "complaint"),
    [("down-kbit=x", "down-kbit=x: not understood"), ("nonsense=1", "nonsense=1: not understood"),
     ("up-kbit=0", "a rate is 0"), ("seed=-1", "seed=-1: not understood")],
)  # fmt: skip
def test_wrong_arguments(link_program: Path, change: str, complaint: str) -> None:
    done = proc.run((*link_argv(link_program, "a", "b", SPEC, 0, 0), change), check=False)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_missing_arguments_are_all_named(link_program: Path) -> None:
    done = proc.run((str(link_program), "seed=1"), check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 13


@pytest.mark.root
def test_the_choice(link_program: Path, tmp_path: Path, has_netem: bool) -> None:
    before = devices()
    assert choose_backend(link_program).name == ("netem" if has_netem else "tap")
    if not has_netem:
        symbols = r"CONFIG_NET_SCH_NETEM(.|\n)*CONFIG_NET_SCH_TBF(.|\n)*CONFIG_TUN(.|\n)*not built"
        with pytest.raises(MissingError, match=symbols):
            choose_backend(tmp_path / "link")
    assert (devices(), namespaces(f"ffprobe{os.getpid()}")) == (before, [])


@pytest.mark.root
def test_nothing_is_left(tag: str, link_program: Path) -> None:
    before = devices()
    condition = Condition("p", "c", LinkSpec(rtt_ms=1.0, up_kbit=4000, buffer_bytes=15_000))
    with open_lab(condition, 1, tag, PATIENT, Tap(link_program), mechanisms=ACTING) as lab:
        assert lab.reading.problems == ()
        assert lab.reading.knobs["link.backend"] == "tap"
        assert len(processes(link_program)) == 1
    assert (devices(), namespaces(tag), processes(link_program)) == (before, [], [])


@pytest.mark.root
def test_the_lab_is_read_again_after_a_load(tag: str, link_program: Path) -> None:
    condition = Condition("p", "c", LinkSpec(rtt_ms=1.0, up_kbit=4000, buffer_bytes=15_000))
    with open_lab(condition, 1, tag, PATIENT, Tap(link_program), mechanisms=ACTING) as lab:
        with lab.watched() as read_again:
            found = read_again()
        assert found.problems == ()
        assert set(found.traffic.values()) == {0}
        with lab.watched() as read_again:
            server = lab.topology.server
            proc.run(("ip", "-n", server.name, "link", "set", "s0", "mtu", "1400"))
            server.write_sysctls({"net.ipv4.tcp_sack": "0"})
            found = read_again()
    assert {
        "server: MTU of s0 was '1500' before the load, and is '1400' after it",
        "server: net.ipv4.tcp_sack was '1' before the load, and is '0' after it",
        "server: net.ipv4.tcp_sack was written during the load",
    } <= set(found.problems)


@pytest.mark.root
def test_two_labs_at_once(tag: str, link_program: Path) -> None:
    condition = Condition("p", "c", LinkSpec(rtt_ms=1.0, up_kbit=4000, buffer_bytes=15_000))
    with ExitStack() as stack:
        labs = [
            stack.enter_context(
                open_lab(condition, 1, f"{tag}{i}", PATIENT, Tap(link_program), mechanisms=ACTING)
            )
            for i in range(2)
        ]
        assert [lab.reading.problems for lab in labs] == [(), ()]
    assert namespaces(tag) == []


@pytest.mark.root
def test_a_link_that_dies_is_told(tag: str, link_program: Path) -> None:
    backend = Tap(link_program)
    with (
        open_topology(tag, 1500, 1, backend.wire) as topology,
        backend.open(topology, LinkSpec(), 0) as link,
    ):
        link.forget()
        (process,) = processes(link_program)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(LabError, match="the link between the TAPs has ended"):
            link.read_report()


@pytest.mark.root
def test_it_ends_with_whoever_holds_its_orders(tag: str, link_program: Path) -> None:
    with open_topology(tag, 1500, 1, "taps") as topology:
        near, far = topology.near.name, topology.far.name
        argv = link_argv(link_program, near, far, LinkSpec(), 0, 0)
        done = proc.run(argv, stdin="flr", timeout_s=10)
    lines = done.stdout.splitlines()
    assert lines[1:3] == ["ok", "ok"]
    assert [set(json.loads(line)) for line in lines[3:]] == [{"down", "up", "cpu_us"}] * 2
