"""The shim for key shares: one byte of a program's own constants, or no program at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import proc
from tests.client.conftest import compile_shim

PROGRAM = """\
#include <stdint.h>
#include <stdio.h>
struct group { uint16_t number; _Bool share; };
const struct group groups[%d][4] = { %s };
int main(void)
{
	const volatile struct group *each = groups[0];

	for (unsigned i = 0; i < 4 * (sizeof groups / sizeof *groups); i++, each++)
		printf("%%x %%d\\n", each->number, each->share);
	return 0;
}
"""
LIST = "{ { 0x11ec, 1 }, { 0x1d, 1 }, { 0x17, 0 }, { 0x18, 0 } }"
FAILED = 125


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shim") / "keyshare.so"
    compile_shim(path)
    return path


def run(shim: Path, folder: Path, lists: list[str], *words: str) -> tuple[int, str, str]:
    """Status and output of a program that has these lists and prints them, under the shim."""
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM % (len(lists), ", ".join(lists)))
    proc.run(["gcc", "-O1", "-o", str(program), str(source)])
    before = program.read_bytes()
    done = proc.run([str(program), *words], env={"LD_PRELOAD": str(shim)}, check=False)
    assert program.read_bytes() == before
    return done.returncode, done.stdout, done.stderr


def test_one_share_is_no_longer_sent(shim: Path, tmp_path: Path) -> None:
    assert run(shim, tmp_path, [LIST])[:2] == (0, "11ec 0\n1d 1\n17 0\n18 0\n")


def test_what_a_browser_starts_for_itself_is_left_alone(shim: Path, tmp_path: Path) -> None:
    assert run(shim, tmp_path, [LIST], "--type=zygote")[1].startswith("11ec 1\n")


@pytest.mark.parametrize("times", [0, 2])
def test_no_other_program_starts(shim: Path, tmp_path: Path, times: int) -> None:
    lists = [LIST] * times or ["{ { 0x6399, 1 }, { 0x1d, 1 } }"]
    status, said, complaint = run(shim, tmp_path, lists)
    assert (status, said) == (FAILED, "")
    assert f"list of TLS groups {times} times, not once" in complaint
