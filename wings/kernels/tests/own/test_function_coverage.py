"""Coverage of cells: functions of a file, what is printed of them, and such a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.kernels.own.definition import OwnKernel
from wings.kernels.own.function_coverage import (
    HEADER,
    functions_run,
    instrument,
    list_functions,
    say_coverage,
)

FILE = """\
// SPDX-License-Identifier: GPL-2.0
#define MAX(a, b) \\
	((a) > (b))

static int table[] = {
	1,
};

struct pair {
	int a;
};

/* Says
 * something (of it).
 */
static bool first(struct sock *sk, int a,
		int b)
{
	if (a) {
		return true;
	}
}

int
second(void)
{
	return 0;
}
EXPORT_SYMBOL_GPL(second);

static struct tcp_congestion_ops ops = {
	.init		= first,
};

static inline void hidden(void)
{
}

static void __init third(struct net *net)
{
}

u32 declared(int);
module_init(third)
"""


def test_functions_of_a_file_by_the_kernels_style() -> None:
    assert list_functions(FILE) == ["first", "second", "third"]


def test_what_ran_is_named_whatever_the_compiler_made_of_it() -> None:
    console = ("[    1.000000] firstflight: ran first+0x0/0x10\n"
               "[    2.000000] firstflight: ran second.constprop.0+0x0/0x12\n"
               "[    2.000000] firstflight: ran 0x60000010\n"
               "[    2.000000] something else third+0x0/0x3\n")  # fmt: skip
    ran = functions_run([console, ""])
    assert ran == {"first", "second"}
    assert say_coverage({"a.c": ["first", "second", "third"], "b.c": ["first"]}, ran) == [
        "2 of 3 functions of a.c ran; in no cell: third",
        "1 of 1 functions of b.c ran",
    ]


def write_source(folder: Path) -> Path:
    for name in ("net/a.c", "net/b.c"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(FILE)
    (folder / "net/Makefile").write_text("obj-y := a.o b.o\n")
    return folder


def test_files_are_compiled_with_a_call_in_each_function(tmp_path: Path) -> None:
    kernel = instrument(OwnKernel("mine", "7.3"), ["net/a.c", "net/b.c"],
                        write_source(tmp_path), "mine-what")  # fmt: skip
    (patch,) = kernel.patches
    assert kernel.name == "mine-what"
    assert patch.touched == (HEADER, "net/Makefile")
    assert "+CFLAGS_a.o += -finstrument-functions" in patch.text
    assert "+CFLAGS_b.o += -finstrument-functions" in patch.text


def test_files_that_are_none_are_all_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        instrument(OwnKernel("mine", "7.3"), ["net/a.h", "net/a.c", "mm/x.c"],
                   write_source(tmp_path), "x")  # fmt: skip
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "--what net/a.h", "--what mm/x.c",
    ]  # fmt: skip
