"""Symbols of a kernel: addresses on a console become functions, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

from testbed.kernel.build.symbols import (
    MOST_BYTES,
    SYMBOLS_FILE,
    list_functions,
    name_in_file,
    read_symbols,
)

MAP = """\
0000000060000000 A __binary_start
0000000060001000 T first
0000000060001040 t second.cold
0000000060001080 T last
0000000060002000 D data
"""
SAID = """\
[    1.000000] WARNING: net/ipv4/tcp.c:1450 at 0x0000000060001048, CPU#0: nginx/24
[    1.000000]  60001040 00000009 000005aa 60036aea
[    1.000000]  [<60001044>] ? 0x0000000060001044
[    1.000000]  [<70000000>] ? 0x0000000070000000
[    1.000000] Kernel panic - not syncing: Kernel mode fault at addr 0x8, ip 0x60001010
"""
NAMED = """\
[    1.000000] WARNING: net/ipv4/tcp.c:1450 at second.cold+0x8/0x40, CPU#0: nginx/24
[    1.000000]  60001040 00000009 000005aa 60036aea
[    1.000000]  [<60001044>] ? second.cold+0x4/0x40
[    1.000000]  [<70000000>] ? 0x0000000070000000
[    1.000000] Kernel panic - not syncing: Kernel mode fault at addr 0x8, ip first+0x10/0x40
"""


def test_addresses_of_functions_are_named_as_the_kernel_would(tmp_path: Path) -> None:
    functions = list_functions(MAP)
    assert "data" not in functions and "second.cold" in functions
    (tmp_path / SYMBOLS_FILE).write_text(functions)
    symbols = read_symbols(tmp_path / "linux")
    assert symbols is not None
    assert symbols.name_addresses(SAID) == NAMED
    console = tmp_path / "console.log"
    console.write_bytes(SAID.encode() + b"\xff\n")
    name_in_file(console, symbols)
    assert console.read_bytes() == NAMED.encode() + b"\xff\n"


def test_a_build_without_symbols_and_a_console_without_end_stay_as_they_are(tmp_path: Path) -> None:
    assert read_symbols(tmp_path / "linux") is None
    (tmp_path / SYMBOLS_FILE).write_text(list_functions(MAP))
    symbols = read_symbols(tmp_path / "linux")
    assert symbols is not None
    console = tmp_path / "console.log"
    with console.open("w") as file:
        file.write(SAID)
        file.truncate(MOST_BYTES + 1)
    name_in_file(console, symbols)
    assert console.read_bytes().startswith(SAID.encode())
