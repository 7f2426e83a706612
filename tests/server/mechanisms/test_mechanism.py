"""Words of mechanisms, and what a kernel of today is told of them."""

from __future__ import annotations

import re

import pytest

from testbed.base.errors import ConfigurationError
from testbed.server.mechanisms.mechanism import (
    ABORT_ON_OVERFLOW,
    MECHANISMS,
    PUBLISHED,
    PUBLISHED_QUEUES,
    SOMAXCONN,
    SYNCOOKIES,
    TODAY,
    Mode,
    Queues,
    parse_management,
    settings_of,
)
from testbed.server.mechanisms.program import SOURCE


def test_each_is_one_sentence_with_its_section() -> None:
    for mechanism in MECHANISMS.values():
        assert re.fullmatch(r"[A-Z][^.]+\.", mechanism.does)
        assert re.fullmatch(r"(III|IV)-[AB](\.\d)?", mechanism.section)


@pytest.mark.parametrize("words", PUBLISHED)
def test_published_combinations_are_read(words: str) -> None:
    assert parse_management(words).name == words


def test_the_order_of_words_does_not_matter() -> None:
    assert parse_management("rst-fin rst-syn abort") == parse_management("abort rst-syn rst-fin")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "exactly one of default, abort, reserv, no-syn-drop is needed, not none"),
        ("rst-syn", "not none"),
        ("abort reserv", "not abort and reserv"),
        ("no-syn-drop rst-syn", "refuses no SYN that rst-syn could answer"),
        ("abort rst-sin", "no mechanism 'rst-sin' (did you mean 'rst-syn'?)"),
        ("abort abort", "'abort' is there twice"),
    ],
)
def test_contradictions_are_named(words: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        parse_management(words)


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        ((0, 0, 0), "SYN queue of 0 connections"),
        ((128, 1024, 0), "cannot be the shorter one"),
        ((2, 2, 3), "syncookies = 3"),
    ],
)
def test_queues_that_no_kernel_has_are_named(queues: tuple[int, int, int], problem: str) -> None:
    syn, accept, syncookies = queues
    with pytest.raises(ConfigurationError, match=problem):
        Queues(syn, accept, syncookies)


def test_equal_queues_are_the_kernels_own() -> None:
    settings = settings_of(parse_management("abort"), TODAY)
    assert (settings.backlog, settings.limit, settings.mode) == (4096, 0, Mode(0))
    assert settings.sysctls[SOMAXCONN] == "4096"
    assert settings.aborts
    assert settings.has_cookies


def test_two_queues_are_a_backlog_and_a_limit() -> None:
    settings = settings_of(parse_management("default"), PUBLISHED_QUEUES)
    assert (settings.backlog, settings.limit, settings.mode) == (1024, 128, Mode.YOUNG)
    assert (settings.sysctls[SYNCOOKIES], settings.sysctls[ABORT_ON_OVERFLOW]) == ("0", "0")


def test_no_syn_drop_has_cookies_and_a_backlog_that_is_never_full() -> None:
    settings = settings_of(parse_management("no-syn-drop"), Queues(syn=128, accept=128))
    assert (settings.backlog, settings.limit) == (129, 128)
    assert settings.sysctls[SYNCOOKIES] == "1"
    assert settings.aborts


def test_the_program_has_the_same_bits() -> None:
    declared = re.findall(r"^\t([A-Z_]+) = (0x[0-9a-f]+),", SOURCE.read_text(), re.MULTILINE)
    assert {name: int(bit, 16) for name, bit in declared} == {m.name: m.value for m in Mode}
