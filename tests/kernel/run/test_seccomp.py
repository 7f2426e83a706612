"""The system call filter, by running its program over calls of every kind."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from testbed.kernel.run.seccomp import ALLOWED, IGNORED, NARROWED, Only, Without, filter_program

X86_64, I386, AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7
ALLOW = 0x7FFF0000
MISSING, FORBIDDEN, DONE = 0x50000 | errno.ENOSYS, 0x50000 | errno.EPERM, 0x50000
HIGHEST = 1024


def judge(number: int, *arguments: int, architecture: int = X86_64) -> int:
    """What the filter returns, as the kernel would run it (seccomp(2), BPF of 1993)."""
    filled = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, architecture, 0, *filled)
    program = list(struct.iter_unpack("<HBBI", filter_program()))
    accumulator = at = 0
    for _ in range(len(program)):
        code, if_true, if_false, value = program[at]
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
            continue
        holds = {0x15: accumulator == value, 0x25: accumulator > value, 0x35: accumulator >= value,
                 0x45: bool(accumulator & value)}[code]  # fmt: skip
        at += if_true if holds else if_false
    raise AssertionError("no end")


def test_every_number_is_judged_as_listed() -> None:
    narrowed = {rule.number for rule in NARROWED.values()}
    ignored = set(IGNORED.values())
    assert not narrowed & set(ALLOWED.values())
    assert not ignored & (narrowed | set(ALLOWED.values()))
    assert {judge(number) for number in ignored} == {DONE}
    allowed = {number for number in range(HIGHEST) if judge(number) == ALLOW} - narrowed
    assert allowed == set(ALLOWED.values())
    assert {judge(number) for number in set(range(HIGHEST)) - allowed - narrowed - ignored} == {
        MISSING
    }


def test_no_number_is_listed_twice() -> None:
    assert len(set(ALLOWED.values())) == len(ALLOWED)


@pytest.mark.parametrize("name", [n for n, rule in NARROWED.items() if isinstance(rule, Only)])
def test_arguments_are_judged_as_listed(name: str) -> None:
    rule = NARROWED[name]
    assert isinstance(rule, Only)
    right = {argument: values[-1] for argument, values in rule.arguments.items()}
    for argument, values in rule.arguments.items():

        def end(value: int, argument: int = argument) -> int:
            given = right | {argument: value}
            return judge(rule.number, *(given.get(at, 0) for at in range(max(right) + 1)))

        assert {end(value) for value in values} == {ALLOW}
        others = {value + 1 & 0xFFFFFFFF for value in values} - set(values)
        assert {end(value) for value in (*others, 0x1234567)} == {FORBIDDEN}


def test_clone_makes_no_namespace() -> None:
    rule = NARROWED["clone"]
    assert isinstance(rule, Without)
    bits = [1 << bit for bit in range(32)]
    assert {judge(rule.number, bit) for bit in bits if bit & rule.mask} == {FORBIDDEN}
    assert {judge(rule.number, bit) for bit in bits if not bit & rule.mask} == {ALLOW}


@pytest.mark.parametrize(("name", "before"), [("open", 1), ("openat", 2)])
def test_what_is_truncated_is_opened_for_writing(name: str, before: int) -> None:
    def end(flags: int) -> int:
        return judge(NARROWED[name].number, *[0] * before, flags)

    for other in (0, os.O_CREAT, os.O_CLOEXEC | os.O_DIRECTORY, os.O_APPEND):
        for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            assert end(mode | other) == ALLOW
            truncated = end(mode | other | os.O_TRUNC)
            assert truncated == (FORBIDDEN if mode == os.O_RDONLY else ALLOW)
        assert end(3 | other) == end(3 | other | os.O_TRUNC) == FORBIDDEN


def test_the_upper_half_of_an_argument_hides_nothing() -> None:
    clone, terminal = NARROWED["clone"], NARROWED["ioctl"]
    assert judge(clone.number, 1 << 40 | 0x10000000) == FORBIDDEN
    assert judge(terminal.number, 0, 1 << 32 | 0x5412) == FORBIDDEN


@pytest.mark.parametrize("number", [0, 56, 0x40000000, 0x40000000 | 59])
def test_calls_of_other_kinds_do_not_exist(number: int) -> None:
    assert judge(number, architecture=I386) == MISSING
    assert judge(number, architecture=AARCH64) == MISSING
    if number >> 30:
        assert judge(number) == MISSING
