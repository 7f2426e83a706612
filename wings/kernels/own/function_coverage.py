"""Coverage: which functions of a source file a kernel's loads have run.

The file is compiled with a call at the begin of each function (gcc's manual, Program
Instrumentation Options), which prints the function's address the first time.  Guests that go on
from an image have not what ran before it on their consoles: the first guests, which boot, have.
Such a kernel is another binary, whose load times nobody looks at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path, PurePosixPath

from testbed.base.errors import ConfigurationError
from testbed.kernel.build.patches import Patch
from wings.kernels.own.definition import OwnKernel

HEADER = "include/firstflight-coverage.h"
_HOOK = """\
/* SPDX-License-Identifier: GPL-2.0-only */
/* Each function of a file that includes this prints its address when it is first called. */
#include <linux/printk.h>

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static void *firstflight_seen[4096];

__attribute__((weak, no_instrument_function))
void __cyg_profile_func_enter(void *function, void *caller)
{
	unsigned int place = ((unsigned long)function >> 2) % 4096, tried = 0;

	for (; firstflight_seen[place]; place = (place + 1) % 4096)
		if (firstflight_seen[place] == function || ++tried == 4096)
			return;
	firstflight_seen[place] = function;
	printk_deferred(KERN_WARNING "firstflight: ran 0x%lx\\n", (unsigned long)function);
}

__attribute__((weak, no_instrument_function))
void __cyg_profile_func_exit(void *function, void *caller)
{
}
"""
_FLAGS = ("-finstrument-functions -finstrument-functions-exclude-file-list=include/,arch/ "
          f"-include $(srctree)/{HEADER}")  # fmt: skip
_RAN = re.compile(r"firstflight: ran ([A-Za-z_]\w*)[.\w]*\+0x0/")
_NAME = re.compile(r"(\w+)\s*\(")
_UNSEEN = re.compile(r"\b(?:inline|__always_inline|notrace)\b")
"""Functions that the kernel has gcc leave alone (include/linux/compiler_types.h)."""


def makefile_of(file: str) -> str:
    """Return the Makefile that says how ``file`` is compiled."""
    return str(PurePosixPath(file).with_name("Makefile"))


def instrument(own: OwnKernel, files: Sequence[str], source: Path, name: str) -> OwnKernel:
    """Return ``own`` under another name, with ``files`` compiled so that they print what runs.

    ``source`` has these files and their Makefiles as the kernel has them.

    Raises:
        ConfigurationError: with each file that is none of C in this kernel's source.
    """
    problems = [
        f"--what {file}: the source has no such file of C, as net/ipv4/tcp_input.c is"
        for file in files
        if not (file.endswith(".c") and (source / file).is_file()
                and (source / makefile_of(file)).is_file())
    ]  # fmt: skip
    if problems:
        raise ConfigurationError(problems)
    changed: dict[str, str] = {}
    for file in files:
        make = makefile_of(file)
        before = changed.get(make) or (source / make).read_text()
        changed[make] = f"{before.rstrip()}\nCFLAGS_{PurePosixPath(file).stem}.o += {_FLAGS}\n"
    text = "".join(
        _diff(make, (source / make).read_text(), after) for make, after in changed.items()
    )
    patch = Patch("9999-coverage.patch", "coverage", text + _diff(HEADER, None, _HOOK))
    return replace(own, name=name, patches=(*own.patches, patch))


def list_functions(text: str) -> list[str]:
    """Return the functions that a file of the kernel's source defines, in their order.

    Those that are ``inline`` print nothing, and are left out.  By the kernel's style: what a
    function is begins a line, and so does its brace (Documentation/process/coding-style.rst).
    """
    names, head = [], ""
    for line in text.splitlines():
        if line.startswith("{"):
            found = _NAME.search(head)
            if found and "=" not in head and not _UNSEEN.search(head):
                names.append(found[1])
            head = ""
        elif line[:1].isalpha() or line[:1] == "_":
            head = line if not head.endswith(("static", "inline", "*")) else f"{head} {line}"
        elif not line[:1].isspace() or line.endswith(";"):
            head = ""
        else:
            head += line
    return list(dict.fromkeys(names))


def functions_run(consoles: Iterable[str]) -> set[str]:
    """Return the functions that the consoles of loads say to have run, with names for addresses."""
    return {name for console in consoles for name in _RAN.findall(console)}


def say_coverage(functions: Mapping[str, Sequence[str]], ran: set[str]) -> list[str]:
    """Return a sentence for each file: how many of its functions ran, and which did not."""
    said = []
    for file, names in functions.items():
        never = [name for name in names if name not in ran]
        some = f"{len(names) - len(never)} of {len(names)} functions of {file} ran"
        said.append(f"{some}; in no cell: {', '.join(never)}" if never else some)
    return said


def _diff(name: str, before: str | None, after: str) -> str:
    lines = unified_diff((before or "").splitlines(keepends=True), after.splitlines(keepends=True),
                         f"a/{name}" if before is not None else "/dev/null",
                         f"b/{name}")  # fmt: skip
    return "".join(lines)
