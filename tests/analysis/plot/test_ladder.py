"""Ladder diagrams: their layout, in which no text overlaps, and their drawing."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from analysis.plot.ladder import Ladder
from analysis.plot.ladder_layout import Layout, Text, crossings, duration, lay_out, overlaps
from analysis.plot.sequence import BoxRule, Exchange, Landing, Remark, Rung, fold_alike
from analysis.plot.theme import INK, PAPER, SERIES

WAY_MS = 50.0


def to_server(at_ms: float, label: str, *, lost: bool = False, connection: int = 1) -> Rung:
    landed = () if lost else (Landing("server", at_ms + WAY_MS),)
    return Rung("client", "server", at_ms, label, landed, connection)


def to_client(at_ms: float, label: str) -> Rung:
    return Rung("server", "client", at_ms, label, (Landing("client", at_ms + WAY_MS),))


def exchange(
    *rungs: Rung, remarks: tuple[Remark, ...] = (), rules: tuple[BoxRule, ...] = ()
) -> Exchange:
    return Exchange(("client",), ("server",), WAY_MS, rungs, remarks, rules)


HANDSHAKE = (to_server(0, "SYN, cookie 7051…, data 5"), to_client(50, "SYN-ACK 6"),
             to_client(50.01, "data 7, ACK 6"), to_server(100, "ACK 1"),
             to_server(100.02, "ACK 8"))  # fmt: skip


def written(layout: Layout, kind: str) -> list[Text]:
    return [text for text in layout.texts if text.kind == kind]


def test_arrows_lead_from_lifeline_to_lifeline_and_always_down() -> None:
    layout = lay_out(exchange(*HANDSHAKE))
    for stroke, rung in zip(layout.strokes, HANDSHAKE, strict=True):
        (x1, y1), (x2, y2) = stroke.points
        assert x1 == layout.lanes[rung.sender]
        assert x2 == layout.lanes[rung.landings[0].host]
        assert y2 - y1 > 40
    assert layout.lanes["client"] < layout.lanes["server"]


def test_what_a_host_sends_and_gets_is_in_order_on_its_lifeline() -> None:
    layout = lay_out(exchange(*HANDSHAKE))
    for host in ("client", "server"):
        ends = []
        for stroke, rung in zip(layout.strokes, HANDSHAKE, strict=True):
            ends.append((rung.sent_ms, rung.sender, stroke.points[0][1]))
            landing = rung.landings[0]
            ends.append((landing.at_ms, landing.host, stroke.points[-1][1]))
        heights = [y for _, where, y in sorted(ends) if where == host]
        assert heights == sorted(heights)


def test_a_round_trip_is_as_high_wherever_nothing_is_in_its_way() -> None:
    pings = [
        packet
        for turn in range(4)
        for packet in (to_server(turn * 100, "data 1, ACK 1"), to_client(turn * 100 + 50, "ACK 2"))
    ]
    falls = {round(s.points[1][1] - s.points[0][1]) for s in lay_out(exchange(*pings)).strokes}
    assert len(falls) == 1


def test_times_stand_beside_their_moments() -> None:
    layout = lay_out(exchange(*HANDSHAKE, to_server(3_600_000, "FIN, ACK 8")))
    assert [text.text for text in written(layout, "time")] == [
        "ms", "0", "50", "100", "150", "3,600,000", "3,600,050",
    ]  # fmt: skip


def test_a_long_wait_is_folded_and_says_how_long_it_was() -> None:
    short, long = (
        lay_out(exchange(*HANDSHAKE, to_server(150 + wait, "FIN, ACK 8")))
        for wait in (1000, 3_600_000)
    )
    assert len(short.folds) == len(long.folds) == 1
    assert short.height == long.height
    assert [text.text for text in written(short, "fold")] == ["1 s later"]
    assert [text.text for text in written(long, "fold")] == ["1 h later"]


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(150, "150 ms"), (1039, "1.04 s"), (61_000, "61 s"), (180_000, "3 min"), (3_600_000, "1 h")],
)
def test_a_wait_is_in_the_unit_that_one_would_say_it_in(milliseconds: float, said: str) -> None:
    assert duration(milliseconds) == said


def test_a_lost_packet_ends_half_way_with_a_cross() -> None:
    layout = lay_out(exchange(to_server(0, "SYN, data 4", lost=True), to_server(1000, "SYN")))
    lost, other = layout.strokes
    assert lost.lost and not other.lost
    assert lost.points[-1][0] == layout.middle
    assert written(layout, "host")[-1].text == "middlebox"


def test_a_packet_that_was_changed_says_what_it_became_on_the_other_side() -> None:
    landing = Landing("server", WAY_MS, "SYN, Fast Open stripped")
    layout = lay_out(exchange(Rung("client", "server", 0, "SYN, cookie request", (landing,))))
    assert layout.middle is not None
    before, after = written(layout, "label")
    assert before.x < layout.middle < after.x
    assert (before.text, after.text) == ("SYN, cookie request", "SYN, Fast Open stripped")
    assert layout.strokes[0].knot is not None


def test_a_repeated_packet_arrives_twice_from_the_middle() -> None:
    twice = Rung(
        "client", "server", 0, "SYN", (Landing("server", WAY_MS), Landing("server", 5000.0))
    )
    layout = lay_out(exchange(twice))
    first, second = layout.strokes
    assert first.points[-1][1] < second.points[-1][1]
    assert second.points[0][0] == layout.middle
    assert written(layout, "label")[-1].text == "the same again"


def test_a_packet_that_was_held_back_waits_in_the_middle() -> None:
    late = Rung("client", "server", 0, "SYN", (Landing("server", 3050.0),))
    layout = lay_out(exchange(late, to_server(1000, "SYN (again)")))
    held = layout.strokes[0]
    assert [x for x, _ in held.points][1:3] == [layout.middle] * 2


def test_without_a_middlebox_there_is_none() -> None:
    assert lay_out(exchange(*HANDSHAKE)).middle is None


def test_packets_that_are_alike_are_the_first_and_how_many_follow() -> None:
    burst = [to_server(n / 1000, "SYN", connection=n + 1) for n in range(20)]
    folded = fold_alike([*burst, to_client(50, "SYN-ACK 1")], 4.0)
    assert [(one.label, one.more) for one in folded] == [
        ("SYN", 0), ("19 more like this", 19), ("SYN-ACK 1", 0),
    ]  # fmt: skip
    assert [one.more for one in fold_alike(burst[:3], 4.0)] == [0, 0, 0]


def test_of_acknowledgements_that_count_on_the_last_is_named() -> None:
    burst = [
        Rung("client", "server", n / 1000, f"2: ACK {n + 1}", connection=2, kind="ACK")
        for n in range(5)
    ]
    assert [one.label for one in fold_alike(burst, 4.0)] == ["2: ACK 1", "4 more, to ACK 5"]


def test_packets_of_different_moments_are_never_folded() -> None:
    apart = [to_server(n * 1000, "SYN") for n in range(5)]
    assert len(fold_alike(apart, 4.0)) == 5


def test_remarks_are_outside_and_name_their_host_where_a_side_has_several() -> None:
    whole = Exchange(
        ("client", "client2"), ("server",), WAY_MS, HANDSHAKE,
        (Remark("client", 0, 'sendto("again") = 5'), Remark("client2", 1, "close()"),
         Remark("server", 50, "accept() = ok")),
    )  # fmt: skip
    layout = lay_out(whole)
    ours, other, theirs = written(layout, "remark")
    assert ours.text == 'client: sendto("again") = 5'
    assert other.text == "client2: close()"
    assert theirs.text == "accept() = ok"
    assert ours.anchor == "end" and ours.x < layout.lanes["client"]
    assert theirs.x > layout.lanes["server"]
    assert abs(ours.y - other.y) > 12


def any_exchange(seed: int) -> Exchange:
    """An exchange as wild as a script can be, the same for a seed."""
    draw = random.Random(seed)  # noqa: S311
    left = ("client", "client2", "attacker")[: draw.randint(1, 3)]
    right = ("server", "server2")[: draw.randint(1, 2)]
    rungs, remarks, rules = [], [], []
    at_ms = 0.0
    for number in range(draw.randint(1, 16)):
        at_ms += draw.choice((0.0, 0.002, 1.0, 50.0, 50.0, 75.0, 400.0, 60_000.0))
        ends = draw.choice(left), draw.choice(right)
        sender, receiver = ends if draw.random() < 0.6 else ends[::-1]
        label = draw.choice(
            ("SYN", "ACK 1", "12: SYN, cookie 0123…, data 1420, as client2", "2: data 1448, ACK 6")
        )
        changed = draw.choice(("", "", "", "2: SYN, data 5, Fast Open stripped"))
        late = draw.choice((0.0,) * 12 + (10.0, 5000.0))
        landings = [Landing(receiver, at_ms + WAY_MS + late, changed)]
        if draw.random() < 0.1:
            landings.append(Landing(receiver, landings[0].at_ms + draw.choice((10.0, 3000.0))))
        if draw.random() < 0.15:
            landings = []
        rungs.append(Rung(sender, receiver, at_ms, label, tuple(landings), number % 9 + 1))
        if draw.random() < 0.5:
            host = draw.choice((*left, *right))
            remarks.append(Remark(host, at_ms, 'sendto("a rather long message, all of it") = 34'))
        if draw.random() < 0.1:
            rules.append(BoxRule(at_ms, "middlebox: drop client > server [S] data times=20"))
    return Exchange(left, right, WAY_MS, tuple(rungs), tuple(remarks), tuple(rules))


def test_texts_never_overlap_whatever_happens() -> None:
    assert {n: found for n in range(25) if (found := overlaps(lay_out(any_exchange(n))))} == {}


def test_an_ordinary_ladder_has_no_arrow_through_its_text() -> None:
    remarks = tuple(Remark("server", 50 + n / 100, f"call {n}() = ok") for n in range(5))
    layout = lay_out(exchange(*HANDSHAKE, remarks=remarks))
    assert overlaps(layout) == crossings(layout) == []


def test_overlaps_are_found() -> None:
    layout = lay_out(exchange(*HANDSHAKE))
    broken = replace(layout, texts=(*layout.texts, layout.texts[0]))
    assert overlaps(broken) == [(layout.texts[0].text, layout.texts[0].text)]
    across = Text("label", "SYN", *layout.strokes[0].points[0])
    crossed = replace(broken, texts=(across,))
    assert crossings(crossed)[0] == ("SYN", HANDSHAKE[0].label)


def test_everything_is_inside_of_the_drawing() -> None:
    for seed in range(20):
        layout = lay_out(any_exchange(seed))
        corners = [point for text in layout.texts for point in text.corners]
        corners += [point for stroke in layout.strokes for point in stroke.points]
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in corners), seed


def test_it_is_drawn_for_light_and_dark_and_named_for_who_cannot_see() -> None:
    svg = Ladder(exchange(*HANDSHAKE), "A <title>").to_svg()
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert root.attrib["aria-label"] == (
        "A <title>. Ladder diagram of 5 packets between client, server"
    )
    for colour in (INK, PAPER, SERIES[0]):
        assert f"var(--{colour.name}, {colour.light})" in svg
    bare = re.sub(r"var\([^)]*\)", "", svg)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", bare) == []
    assert not re.search(r"\bid=|url\(", svg)


def test_a_notebook_gets_a_document_with_fixed_colours() -> None:
    shown = Ladder(exchange(*HANDSHAKE))._repr_mimebundle_()
    assert "var(" not in shown["image/svg+xml"]
    ElementTree.fromstring(shown["image/svg+xml"])  # noqa: S314 - our own
