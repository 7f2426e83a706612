"""BPF program: compiled, read, and filled in; what cannot be is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from wings.server_loads.mechanisms import program
from wings.server_loads.mechanisms.program import (
    COUNTERS,
    OFFSETS,
    SOURCE,
    build_program,
)


def test_offsets_are_those_of_the_source() -> None:
    listed = SOURCE.read_text().partition("const struct {")[2].partition("} offsets")[0]
    assert re.findall(r"\t__u32 (\w+);", listed) == list(OFFSETS)


def test_counters_are_those_of_the_source() -> None:
    listed = SOURCE.read_text().partition("SYNS,")[2].partition("COUNTERS,")[0]
    names = re.findall(r"^\t([A-Z_]+),", "\tSYNS," + listed, re.MULTILINE)
    assert tuple(name.lower() for name in names) == COUNTERS


def test_a_missing_compiler_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "COMPILER", "no-such-compiler")
    with pytest.raises(MissingError, match=r"no-such-compiler.*apt-get install.*gcc-bpf"):
        build_program(tmp_path)
