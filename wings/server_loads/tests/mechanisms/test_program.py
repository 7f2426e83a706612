"""BPF program: compiled, read, and filled in; what cannot be is named."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from wings.server_loads.mechanisms import program
from wings.server_loads.mechanisms.program import (
    COMPILER,
    COUNTERS,
    OFFSETS,
    SOURCE,
    build_program,
    fill_in,
    read_object,
)


def test_every_symbol_is_a_map_or_an_offset(tmp_path: Path) -> None:
    instructions, places = read_object(build_program(tmp_path))
    assert {name for _, name in places} == {"configuration", "counters", *OFFSETS}
    assert len(instructions) % 8 == 0


def test_counters_are_those_of_the_source() -> None:
    listed = SOURCE.read_text().partition("SYNS,")[2].partition("COUNTERS,")[0]
    names = re.findall(r"^\t([A-Z_]+),", "\tSYNS," + listed, re.MULTILINE)
    assert tuple(name.lower() for name in names) == COUNTERS


def test_maps_and_offsets_are_filled_in() -> None:
    load = struct.pack("<BBhi", 0x18, 0x03, 0, 0) + bytes(8)
    wanted = ((0, "counters"), (16, "sk_ack_backlog"))
    filled = fill_in(load * 2, wanted, {"counters": 7}, {"sk_ack_backlog": 660})
    first, second = struct.unpack_from("<BBhi", filled), struct.unpack_from("<BBhi", filled, 16)
    assert (first, second) == ((0x18, 0x13, 0, 7), (0x18, 0x03, 0, 660))


def test_a_call_of_a_function_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "call.c"
    source.write_text(
        "extern int other(void);\n"
        '__attribute__((section("classifier"))) int manage(void) { return other(); }\n'
    )
    proc.run((COMPILER, "-O2", "-c", str(source), "-o", str(tmp_path / "call.o")))
    with pytest.raises(ValueError, match=r"call\.o: other: relocation of kind"):
        read_object(tmp_path / "call.o")


def test_a_missing_compiler_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "COMPILER", "no-such-compiler")
    with pytest.raises(MissingError, match=r"no-such-compiler.*apt-get install.*gcc-bpf"):
        build_program(tmp_path)
