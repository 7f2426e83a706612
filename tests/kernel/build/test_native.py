"""The C programs: static, without warnings, for any C library; made once, and again if damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.places import ROOT
from testbed.kernel.build import native
from testbed.kernel.build.compiler import BuildError
from testbed.kernel.build.native import compile_program, ensure_native, read_libc
from tests.kernel.toolchains import find_toolchain


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "ensure_toolchain", lambda *_asked: find_toolchain())


def silent(message: str) -> None:
    assert message


def test_each_source_becomes_a_static_program_or_a_shared_object_for_old_libraries(
    tmp_path: Path,
) -> None:
    folder = ensure_native(tmp_path, silent)
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    del made["SHA256SUMS"]
    assert {name.partition(".")[0] for name in made} == {
        path.stem for path in native.SOURCES.glob("*.c")
    }
    for name, data in made.items():
        headers = proc.run(["readelf", "--program-headers", str(folder / name)]).stdout
        assert ("DYNAMIC" in headers) == name.endswith(".so")
        if name.endswith(".so"):
            assert (2, 2) <= read_libc(data) <= native.OLDEST_LIBC
        assert str(ROOT).encode() not in data
        assert str(find_toolchain().folder).encode() not in data


def test_they_are_made_once_and_again_if_damaged(tmp_path: Path) -> None:
    folder = ensure_native(tmp_path, silent)
    whole = (folder / "init").read_bytes()
    assert ensure_native(tmp_path, pytest.fail) == folder
    (folder / "init").write_bytes(b"cut short")
    said: list[str] = []
    assert ensure_native(tmp_path, said.append) == folder
    assert said == [f"compiling the C programs again: {folder} is damaged"]
    assert (folder / "init").read_bytes() == whole


def test_every_input_is_in_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {native.programs_key({"init.c": "1"}), native.programs_key({"init.c": "2"})}
    monkeypatch.setattr(native, "read_name", lambda: "another")
    keys.add(native.programs_key({"init.c": "1"}))
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int main(void) { int unused; return 0; }\n", "unused variable"),
        (
            "#define _GNU_SOURCE\n#include <stdlib.h>\n"
            "long read_it(const char *text) { return strtol(text, NULL, 10); }\n",
            "needs the C library 2.38, which no root has",
        ),
    ],
)
def test_what_is_wrong_with_a_source_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.c").write_text(text)
    with pytest.raises(BuildError, match=said):
        compile_program(tmp_path / "a.c", tmp_path, find_toolchain())
