"""A pin whose "kernel" is one C file, built in a second."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.kernel.build.pin import Pin, read_pin
from testbed.kernel.build.source import kept_tarball

MAKEFILE = """\
ARCH ?= none
allnoconfig:
\tgrep -v LOST $(KCONFIG_ALLCONFIG) > .config
linux: hello.c
\t@echo '  CC      hello.o'
\t$(CC) -o linux hello.c
\tnm -n linux > System.map
"""
PROGRAM = "int main(void) { return 0; }\n"
PATCH = """\
SPDX-License-Identifier: GPL-2.0-only

---
--- a/hello.c
+++ b/hello.c
@@ -1 +1 @@
-int main(void) { return 0; }
+int main(void) { return 7; }
"""


def make_pin(folder: Path, config: str = "CONFIG_A=y\n", program: str = PROGRAM) -> Pin:
    """A pin whose "kernel" is one C file, with its tarball already kept in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config").write_text(config)
    (folder / "0001.patch").write_text(PATCH)
    tree = folder / "tree"
    tree.mkdir(exist_ok=True)
    (tree / "Makefile").write_text(MAKEFILE)
    (tree / "hello.c").write_text(program)
    tarball = folder / "linux.tar.xz"
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(tree, "linux-source")
    pin = replace(read_pin("7.3"), version="9.9", package_version="9.9.1-1", tarball=tarball.name,
                  tarball_sha256=file_sha256(tarball), config=folder / "config",
                  patches=(folder / "0001.patch",))  # fmt: skip
    place = kept_tarball(pin, folder / "cache")
    place.parent.mkdir(parents=True, exist_ok=True)
    tarball.replace(place)
    return pin
