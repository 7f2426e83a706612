"""Files of scenarios: all of them are whole, and what is wrong in one is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from wings.scenarios.promise import PromiseError, read_promise
from wings.scenarios.spec import Scenario
from wings.scenarios.tests import SCENARIOS

WHOLE = '''\
title = "A title"
source = "RFC 7413, section 3"
promise = "It is promised."
lesson = "It is learnt."
fault = "middlebox drop client > server"
steps = """
server listen s
client connect a server
"""
'''


def problems(text: str) -> list[str]:
    with pytest.raises(PromiseError) as caught:
        read_promise(text)
    return caught.value.problems


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_of_the_scenarios_is_whole(path: Path) -> None:
    promise = read_promise(path.read_text())
    assert promise.title[-1] != "."
    assert promise.promise.endswith(".")
    assert promise.lesson.endswith(".")
    assert promise.script.expectations


def test_there_are_as_many_as_are_promised() -> None:
    assert len(list(SCENARIOS.glob("*.toml"))) >= 35


def test_a_file() -> None:
    promise = read_promise(WHOLE)
    assert (promise.title, promise.rtt_ms, promise.changed) == ("A title", 100.0, None)
    assert read_promise("rtt_ms = 20\n" + WHOLE).rtt_ms == 20.0


def test_what_kernels_do_instead() -> None:
    change = WHOLE.partition("steps")[2].replace("server\n", "server -> ok\n")
    text = f'{WHOLE}[changed]\nsince = "Linux 5.14"\nsays = "Otherwise."\nsteps{change}'
    promise = read_promise(text)
    assert promise.changed is not None
    assert promise.changed.since == "Linux 5.14"
    assert promise.changed.script.actions[1].expected == "ok"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title = ", "tittle = ", "tittle: unknown key (did you mean 'title'?)"),
        ("title = ", "tittle = ", "title: missing, or no text"),
        ('lesson = "It is learnt."', "lesson = 5", "lesson: missing, or no text"),
        ("title = ", "cache_slots = 3\ntitle = ", "cache_slots: 3 is no power of two from 2 to"),
        ("title = ", "rtt_ms = 0\ntitle = ", "rtt_ms: 0 is not above 0 and up to 60000"),
        ("title = ", 'rtt_ms = "x"\ntitle = ', "rtt_ms: not a number of milliseconds"),
        ("title = ", "title = x", "not TOML: "),
        ("connect a", "conect a", "steps, line 2: 'conect' is nothing that client can do"),
        ("drop client", "lose client", "fault, line 1: 'lose' is nothing that middlebox can do"),
        ('"middlebox drop client > server"', '"client > server [S]"', "fault: takes lines that do"),
        ("title = ", 'changed = "x"\ntitle = ', "changed: not a table; write it as [changed]"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, said: str) -> None:
    assert any(problem.startswith(said) for problem in problems(WHOLE.replace(old, new, 1)))


def test_what_is_for_ipv4_alone() -> None:
    (problem,) = problems(
        "ip = 6\n" + WHOLE.replace("client connect a server", "client visit 9", 1)
    )
    assert "visit are for IPv4" in problem


def test_slots_are_what_the_kernel_is_booted_with() -> None:
    assert Scenario("a", "cache_slots = 16\n" + WHOLE).boot_options == ("tcpmhash_entries=16",)
    assert Scenario("a", WHOLE).boot_options == ()


def test_another_script_may_not_do_something_else() -> None:
    other = '[changed]\nsince = "x"\nsays = "x"\nsteps = "wait 1s"\n'
    assert problems(WHOLE + other) == [
        "changed.steps: does something else than steps; only what is expected may differ"
    ]
