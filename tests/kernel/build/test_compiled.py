"""What a kernel has not of a patch: files that are not compiled, options that stay off."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.kernel.build.compiled import find_misses, read_misses, write_misses
from testbed.kernel.build.patches import Patch
from tests.kernel.small_tree import write_tree
from tests.kernel.toolchains import find_toolchain

TREE: Mapping[str, str] = {
    ".config": "CONFIG_NET=y\n# CONFIG_PLANTED is not set\n# CONFIG_SCTP is not set\n",
    "net/Makefile": "obj-$(CONFIG_NET) += ipv4/\nobj-$(CONFIG_SCTP) += sctp/\n",
    "net/ipv4/Makefile": "obj-y := tcp.o \\\n\troute.o\nobj-$(CONFIG_PLANTED) += tcp_planted.o\n",
    "net/sctp/Makefile": "obj-$(CONFIG_SCTP) += sctp.o\nsctp-y := input.o\n",
    "net/ipv4/.tcp.o.cmd": "source_net/ipv4/tcp.o := net/ipv4/tcp.c\ndeps := \\\n  net/tcp.h \\\n",
    **dict.fromkeys(("net/ipv4/tcp.c", "net/ipv4/tcp_planted.c", "net/sctp/input.c"), "int x;\n"),
    **dict.fromkeys(("net/tcp.h", "net/sctp.h", "Documentation/tcp.rst"), "\n"),
    # What another configuration has compiled, and this one has not linked.
    "net/ipv4/.tcp_planted.o.cmd": "source := net/ipv4/tcp_planted.c\n",
    "net/ipv4/tcp_planted.o": "",
    "net/ipv4/tcp.o": "",
}
KCONFIG = """\
--- a/net/ipv4/Kconfig
+++ b/net/ipv4/Kconfig
@@ -1,2 +1,9 @@
 config OLD
+
+config PLANTED
+\tbool "Planted"
+\tdefault y
+
+config OTHER
+\tbool "Other"
+
 config OLDER
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = write_tree(tmp_path / "tree", TREE)
    toolchain = find_toolchain()
    argv = [toolchain.program("ar"), "rcT", "vmlinux.a", "net/ipv4/tcp.o"]
    proc.run(argv, cwd=folder, env=toolchain.environment)
    return folder


def touching(*names: str) -> str:
    return "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n" for name in names)


def misses(tree: Path, text: str, *, reverse: bool = False) -> list[str]:
    return find_misses(tree, [Patch("a.patch", "a", text, reverse=reverse)], find_toolchain())


def test_what_is_compiled_or_included_is_no_miss(tree: Path) -> None:
    everything = touching("net/ipv4/tcp.c", "net/tcp.h", "Documentation/tcp.rst", "net/gone.c")
    assert misses(tree, everything) == []


def test_files_that_are_not_compiled_are_named_with_their_option(tree: Path) -> None:
    found = misses(tree, touching("net/ipv4/tcp_planted.c", "net/sctp/input.c", "net/sctp.h"))
    assert found == [
        "net/ipv4/tcp_planted.c is not compiled: CONFIG_PLANTED is not set "
        "(--config CONFIG_PLANTED=y)",
        "net/sctp.h is not compiled",
        "net/sctp/input.c is not compiled: CONFIG_SCTP is not set (--config CONFIG_SCTP=y)",
        "so no code of it is in this kernel",
    ]
    assert len(misses(tree, touching("net/ipv4/tcp.c", "net/sctp.h"))) == 1


def test_new_options_that_stay_off_are_named_once(tree: Path) -> None:
    off = misses(tree, KCONFIG)
    assert off == [
        "the new option CONFIG_PLANTED of net/ipv4/Kconfig stays off, though its default is y "
        "(--config CONFIG_PLANTED=y)",
        "the new option CONFIG_OTHER of net/ipv4/Kconfig stays off (--config CONFIG_OTHER=y)",
    ]
    with_file = misses(tree, KCONFIG + touching("net/ipv4/tcp_planted.c"))
    assert [line for line in with_file if "CONFIG_PLANTED" in line] == [
        "net/ipv4/tcp_planted.c is not compiled: CONFIG_PLANTED is not set "
        "(--config CONFIG_PLANTED=y)"
    ]
    assert misses(tree, KCONFIG, reverse=True) == []
    (tree / ".config").write_text("CONFIG_PLANTED=y\nCONFIG_OTHER=y\n")
    assert misses(tree, KCONFIG) == []


def test_they_are_kept_beside_the_binary(tmp_path: Path) -> None:
    assert read_misses(tmp_path) == ()
    write_misses(tmp_path, ["a", "b"])
    assert read_misses(tmp_path) == ("a", "b")
