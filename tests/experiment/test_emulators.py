"""Links in the words of dummynet and of Mininet: what they come to here, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.cli.main import main
from testbed.base.errors import ConfigurationError
from testbed.experiment.emulators import Translation, from_dummynet, from_mininet
from testbed.experiment.profiles import read_profile
from testbed.model import LinkSpec
from testbed.model.knob import build
from tests.hallway import make_services

PIPE = "ipfw pipe 1 config bw 4Mbit/s delay 10ms queue 128Kbytes noerror"


def link_of(translation: Translation) -> LinkSpec:
    link: LinkSpec = build(LinkSpec, translation.values)
    return link


def problems_of(text: str, translate: object = from_dummynet) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        translate(text)  # type: ignore[operator]
    return list(caught.value.problems)


def test_the_papers_pipes_are_the_default_link() -> None:
    up = "pipe 2 config bw 256Kbit/s delay 10 queue 128Kbytes noerror"
    found = from_dummynet(PIPE, up)
    assert link_of(found) == LinkSpec()
    assert len(found.differs) == 1


@pytest.mark.parametrize(
    ("bandwidth", "kbit"),
    [("4Mbit/s", 4000), ("300Kbit/s", 300), ("56000bit/s", 56), ("1MByte/s", 8000), ("2G", 2000000),
     ("64KB", 512), ("64Kb", 64), ("64k", 64), ("12500bytes/s", 100)],
)  # fmt: skip
def test_rates_of_a_pipe(bandwidth: str, kbit: int) -> None:
    link = link_of(from_dummynet(f"bw {bandwidth} delay 1"))
    assert (link.down_kbit, link.up_kbit) == (kbit, kbit)


def test_queues_of_a_pipe() -> None:
    assert link_of(from_dummynet("bw 1Mbit/s delay 1")).qdisc == "pfifo limit 50"
    assert link_of(from_dummynet("bw 1Mbit/s delay 1 queue 20slots")).qdisc == "pfifo limit 20"
    assert link_of(from_dummynet("bw 1Mbit/s delay 1 queue 3000B")).buffer_bytes == 3000
    mixed = link_of(from_dummynet("bw 1M delay 1 queue 4K", "bw 1M delay 1 queue 7"))
    assert (mixed.buffer_bytes, mixed.qdisc, mixed.qdisc_up) == (4096, "fifo", "pfifo limit 7")
    found = from_dummynet("bw 1M delay 1 queue 4K", "bw 1M delay 1 queue 8K")
    assert (link_of(found).buffer_bytes, link_of(found).qdisc_up) == (4096, "bfifo limit 8192")
    assert any("bfifo" in sentence for sentence in found.differs)
    two = link_of(from_dummynet("bw 1M delay 1 queue 5", "bw 1M delay 1 queue 7"))
    assert (two.qdisc_down, two.qdisc_up) == ("pfifo limit 5", "pfifo limit 7")


def test_delays_and_losses_of_two_pipes() -> None:
    found = from_dummynet("bw 1M delay 30 plr 0.01", "bw 1M delay 10 plr 0.001")
    link = link_of(found)
    assert (link.rtt_ms, link.delay_up_ms) == (40, 10)
    assert (link.loss_down_pct, link.loss_up_pct) == (1, 0.1)
    assert any("lost before that" in sentence for sentence in found.differs)
    assert any("told of a full queue" in sentence for sentence in found.differs)


def test_all_that_a_pipe_has_and_a_link_has_not_is_named_at_once() -> None:
    found = problems_of(
        "bw 1.5Mbit/s delay 10s queue 0 plr 2 burst 10k mask src-ip 0xff dst-ip 0xff bw 1M "
        "codel target 5 interval 100 colour red 0.002/3/10/0.1"
    )
    begins = ["bw 1.5Mbit/s: ", "delay 10s: ", "queue 0: ", "plr 2: ", "burst 10k: ",
              "mask src-ip 0xff dst-ip 0xff: ", "bw: named twice",
              "codel target 5 interval 100 colour: a queue of its own",
              "red 0.002/3/10/0.1: a queue of its own"]  # fmt: skip
    assert [a for a, b in zip(found, begins, strict=True) if not a.startswith(b)] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("delay 10", "no bw"),
        ("bw 0 delay 10", "as fast as it can be"),
        ("bw tun0 delay 10", "not a rate"),
        ("bw 1500bit/s delay 10", "whole number of kbit/s"),
        ("bw 1M", "rtt_ms"),
        ("bw 1M delay 40000", "rtt_ms"),
        ("bw 1M dealy 10", "dealy 10: not a word of `pipe N config` (did you mean 'delay'?)"),
        ("bw 1M delay", "delay : a whole number"),
        ("bw '1M", "No closing quotation"),
    ],
)
def test_pipes_that_are_no_link(text: str, problem: str) -> None:
    assert any(problem in each for each in problems_of(text))


def test_parameters_of_a_tclink() -> None:
    text = "bw=4, delay='10ms', max_queue_size=100"
    found = from_mininet(text)
    assert link_of(found) == LinkSpec(20, 4000, 4000, qdisc="pfifo limit 100", framing_bytes=14)
    assert from_mininet(f"net.addLink(h1, h2, cls=TCLink, {text}, use_htb=True)") == found
    up = "bw=.256, delay='500us', jitter='100us', loss=2, enable_ecn=False"
    link = link_of(from_mininet("bw=10, delay='.5s', jitter='100us'".replace(".5s", "0.5s"), up))
    assert (link.down_kbit, link.up_kbit, link.rtt_ms) == (10_000, 256, 500.5)
    assert (link.delay_up_ms, link.delay_jitter_ms, link.loss_up_pct) == (0.5, 0.1, 2)
    assert link.qdisc == "pfifo limit 1000"


def test_all_that_a_tclink_has_and_a_link_has_not_is_named_at_once() -> None:
    found = problems_of(
        "net.addLink(a, b, bw=4000, delay=10, use_tbf=True, loss='1%', lag=3, jitter=x, "
        "max_queue_size=0, **more)", from_mininet,
    )  # fmt: skip
    begins = ["bw=4000: ", "delay=10: ", "use_tbf=True: ", "loss='1%': ", "lag=3: ", "jitter=x: ",
              "max_queue_size=0: ", "**=more: "]  # fmt: skip
    assert [a for a, b in zip(found, begins, strict=True) if not a.startswith(b)] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [("delay='1ms'", "no bw"), ("bw 4", "not parameters"), ("bw=4, jitter='1ms'", "without a"),
     ("__import__('os')", "no bw"), ("4", "not parameters"), ("bw=True, delay='1ms'", "Mbit/s")],
)  # fmt: skip
def test_parameters_that_are_no_link(text: str, problem: str) -> None:
    assert any(problem in each for each in problems_of(text, from_mininet))


@pytest.mark.parametrize(
    ("words", "link"),
    [
        (("from-dummynet", PIPE), LinkSpec(20, 4000, 4000)),
        (("from-mininet", "bw=4, delay='10ms'"),
         LinkSpec(20, 4000, 4000, qdisc="pfifo limit 1000", framing_bytes=14)),
    ],
)  # fmt: skip
def test_what_is_printed_is_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], link: LinkSpec
) -> None:
    assert main(["links", *words], make_services(tmp_path)) == 0
    profile = tmp_path / "mine.toml"
    profile.write_text(capsys.readouterr().out)
    assert f": {' '.join(words[1].split())}" in profile.read_text()
    assert build(LinkSpec, read_profile(profile).values) == link
    assert main(["links", words[0], "bw"], make_services(tmp_path)) == 2
