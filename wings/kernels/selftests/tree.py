"""Tests of a kernel: the folder tools/testing/selftests of the very source that it is built from.

They are read from that source with the patches of the kernel, never from this tree.  Programs of
``net`` are compiled by the toolchain, statically, with the headers of the same source
(Documentation/dev-tools/kselftest.rst, Documentation/kbuild/headers_install.rst).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.base import places, proc
from testbed.base.errors import MissingError
from testbed.base.heartbeat import repeating
from testbed.base.locks import locked
from testbed.kernel.build.cache import new_build
from testbed.kernel.build.compiler import parse_config
from testbed.kernel.build.patches import Patch, apply_patch
from testbed.kernel.build.toolchain import Progress, Toolchain, ensure_toolchain, read_name
from testbed.model import digest
from wings.kernels.own.build import open_source
from wings.kernels.own.definition import OwnKernel, read_kernel

FOLDER = "selftests"
"""The folder of unpacked and compiled tests in the cache."""
TESTS = "tools/testing/selftests"
LOG_FILE = "make.log"
LIST_FILE = "tests.txt"
_RECIPE = "1"  # raise when the steps below change what comes out
_PARTS = ("Makefile", "Kbuild", "scripts", "include/uapi", "include/asm-generic/Kbuild",
          "arch/x86", TESTS, "tools/include", "tools/scripts")  # fmt: skip
"""What the tests and their headers are made of; a name stands for the file or all of the folder."""
_KEPT = ("net", "kselftest", "lib")
"""Of the tests' folders, those that are kept; files beside them are as well."""
_FOREIGN = frozenset({"busy_poller", "netlink-dumps", "tun", "nat6to4.bpf", "sample_ret0.bpf",
                      "sample_map_ret0.bpf"})  # fmt: skip
"""Programs that are not asked for: they are made of code that Python or clang generates."""
_MAKE_S = 900.0


@dataclass(frozen=True, slots=True)
class TestTree:
    """Tests of one kernel on disk.

    Attributes:
        folder: what is ``tools/testing/selftests`` in the source, with programs compiled.
        source: what the source is, for people.
        listed: the names that the Makefile of ``net`` lists as tests, in its order.
        absent: programs of ``net`` that are not compiled, with the first error of each.
        options: what the kernel's configuration asks for.
    """

    __test__ = False  # no test class of pytest's

    folder: Path
    source: str
    listed: tuple[str, ...]
    absent: dict[str, str]
    options: dict[str, str]

    @property
    def packetdrill(self) -> Path | None:
        """The folder of packetdrill's scripts; ``None``: this kernel has none."""
        folder = self.folder / "net" / "packetdrill"
        return folder if folder.is_dir() else None


def ensure_tests(version: str, cache: Path, progress: Progress) -> TestTree:
    """Return the tests of the kernel ``version``, unpacked and compiled below ``cache`` if need be.

    Raises:
        ConfigurationError: there is no such kernel.
        MissingError: its source or the toolchain is not to be had, or it has no tests.
    """
    own = read_kernel(version, places.data())
    folder = cache / "kernels" / FOLDER / key_of_tests(own)
    if not (folder / LIST_FILE).is_file():
        waiting = f"tests of kernel {version}: waiting for another run that compiles them"
        with (repeating(progress) as report,
              locked(folder.with_name(f".{folder.name}.lock"), waiting, report)):  # fmt: skip
            if not (folder / LIST_FILE).is_file():
                toolchain = ensure_toolchain(cache, report)
                with new_build(folder) as work:
                    report(f"tests of kernel {version}: unpacking and compiling them")
                    _make(work, own, cache, toolchain, report)
    return TestTree(folder / FOLDER, own.source, tuple((folder / LIST_FILE).read_text().split()),
                    _find_absent(folder), parse_config(own.render_config()))  # fmt: skip


def key_of_tests(own: OwnKernel) -> str:
    """Return what decides the tests of a kernel: those that differ elsewhere share them."""
    document = {"source": own.git.ids_of(_PARTS) if own.git else own.pin.tarball_sha256,
                "patches": [patch.sha256 for patch in _patches_of(own)], "compiler": read_name(),
                "recipe": _RECIPE}  # fmt: skip
    return digest(document)[:24]


def _patches_of(own: OwnKernel) -> list[Patch]:
    """Return those of a kernel's patches that change a file which tests are made of."""
    return [patch for patch in own.all_patches
            if any(name == part or name.startswith(f"{part}/") for name in patch.touched
                   for part in _PARTS)]  # fmt: skip


def _find_absent(folder: Path) -> dict[str, str]:
    log = (folder / LOG_FILE).read_text(errors="replace")
    return {name: first_error(name, log) for name in _programs(folder / FOLDER / "net")
            if not (folder / FOLDER / "net" / name).is_file()}  # fmt: skip


def first_error(name: str, log: str) -> str:
    """Return the first line in a log of make that says why the program ``name`` is not there."""
    if name in _FOREIGN:
        return "is made of generated code"
    for line in log.splitlines():
        if line.startswith(f"{name}.c:") and "error:" in line:
            return line.partition("error:")[2].strip()
        if f"/{name}]" in line or f"'{name}'" in line:
            return line.strip()
    return "was not compiled"


def _programs(net: Path) -> list[str]:
    return sorted(path.stem for path in net.glob("*.c"))


def _make(
    work: Path, own: OwnKernel, cache: Path, toolchain: Toolchain, progress: Progress
) -> None:
    tree = work / "source"
    tree.mkdir()
    source, _ = open_source(own, cache, toolchain, progress)
    touched = {name for patch in _patches_of(own) for name in patch.touched}
    source.extract({*_PARTS, *touched}, tree)
    if not (tree / TESTS / "net" / "Makefile").is_file():
        raise MissingError(f"{source.describe()} has no {TESTS}/net: name a whole source tree")
    for patch in _patches_of(own):
        apply_patch(patch, tree, source.describe(), toolchain)
    make = (toolchain.program("make"), "ARCH=x86", f"CC=gcc --sysroot={toolchain.folder}")
    log = _run((*make, f"HOSTCC=gcc --sysroot={toolchain.folder}", "HOSTLDFLAGS=-static",
                "SHELL=sh", "headers"), tree, toolchain)  # fmt: skip
    net = tree / TESTS / "net"
    # -k: what needs a library that the toolchain has not is left out, and the tests say so.
    wanted = [name for name in _programs(net) if name not in _FOREIGN]
    argv = (*make, "-k", f"-j{len(os.sched_getaffinity(0))}", f"OUTPUT={net}",
            "USERLDFLAGS=-static", *(str(net / name) for name in wanted))  # fmt: skip
    log += _run(argv, net, toolchain, may_fail=True)
    (work / LOG_FILE).write_text(log)
    listed = _run((*make, "emit_tests"), net, toolchain, may_fail=True)
    kept = work / FOLDER
    kept.mkdir()
    for path in sorted((tree / TESTS).iterdir()):
        if path.is_file() or path.name in _KEPT:
            path.rename(kept / path.name)
    shutil.rmtree(tree)
    names = [line.rpartition(":")[2] for line in listed.splitlines() if ":" in line]
    (work / LIST_FILE).write_text("\n".join(n for n in names if _is_name(n)) + "\n")


def _is_name(word: str) -> bool:
    return bool(word) and not word.startswith((" ", "/")) and " " not in word


def _run(argv: Sequence[str], folder: Path, toolchain: Toolchain, *, may_fail: bool = False) -> str:
    done = proc.run(argv, cwd=folder, env=toolchain.environment, timeout_s=_MAKE_S, check=False)
    if done.returncode != 0 and not may_fail:
        raise MissingError(
            f"the tests' headers cannot be made: `{' '.join(argv[-2:])}` ended with status "
            f"{done.returncode}: {done.stderr.strip()[-1500:]}"
        )
    return done.stdout + done.stderr
