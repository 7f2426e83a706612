"""Program packetdrill: compiled from the user's source tree, or the one on the user's PATH.

Debian has no package of it.  It looks for the edge of a clock tick by calling times(2) again and
again; where no computing takes time that would never end, and where a system call costs some it
takes a million of them.  So a copy that is compiled here is linked with a times(2) that first rests
for 0.1 ms (ld(1), --wrap); its source is as it was.  A program of the PATH takes the calls.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError
from testbed.base.locks import locked
from testbed.kernel.build.cache import new_build
from testbed.kernel.build.compiler import BuildError
from testbed.kernel.build.toolchain import Progress, Toolchain, ensure_toolchain, read_name
from testbed.model import digest

PROGRAM = "packetdrill"
VARIABLE = "FIRSTFLIGHT_PACKETDRILL"
"""Names the source tree where no option does."""
NOT_THERE = (
    "no packetdrill: its scripts are left out.  Give --packetdrill FOLDER, a source tree such as "
    f"github.com/google/packetdrill, or set {VARIABLE}, or put the program on the PATH"
)
_INNER = ("", "packetdrill", "gtests/net/packetdrill")
"""Where its Makefile may be below the folder that the user names."""
_MAKEFILE = "Makefile.Linux"
_RECIPE = "1"  # raise when the steps below change the program
_MAKE_S = 300.0
_REST = """\
#include <sys/times.h>
#include <time.h>

clock_t __real_times(struct tms *buffer);
clock_t __wrap_times(struct tms *buffer);

clock_t __wrap_times(struct tms *buffer)
{
	const struct timespec rest = { 0, 100000 };

	nanosleep(&rest, NULL);
	return __real_times(buffer);
}
"""


@dataclass(frozen=True, slots=True)
class Packetdrill:
    """A packetdrill that guests can run.

    Attributes:
        program: the file.
        says: which one it is, for people.
        sha256: of the file.
    """

    program: Path
    says: str
    sha256: str


def find_packetdrill(named: Path | None, cache: Path, progress: Progress) -> Packetdrill | None:
    """Return packetdrill: of the tree ``named``, of that in VARIABLE, or the one on the PATH.

    Raises:
        ConfigurationError: the folder has no source of it.
        BuildError: it does not compile.
    """
    if named is None and os.environ.get(VARIABLE):
        named = Path(os.environ[VARIABLE])
    if named is not None:
        return _compile(_find_source(named), cache, progress)
    there = shutil.which(PROGRAM)
    if there is None:
        return None
    program = Path(there).resolve()
    return Packetdrill(program, f"{there} of this machine", file_sha256(program))


def _find_source(named: Path) -> Path:
    for inner in _INNER:
        if (named / inner / _MAKEFILE).is_file():
            return named / inner
    raise ConfigurationError(
        [f"{named}: no source of packetdrill: there is no {_MAKEFILE} in it or in "
         f"{_INNER[-1]}; clone github.com/google/packetdrill and name that folder"]
    )  # fmt: skip


def _compile(source: Path, cache: Path, progress: Progress) -> Packetdrill:
    files = {str(path.relative_to(source)): file_sha256(path) for path in sorted(source.rglob("*"))
             if path.is_file() and path.suffix in {".c", ".h", ".l", ".y", ".common", ".Linux"}
             and path.name not in {"lexer.c", "parser.c", "parser.h"}}  # fmt: skip
    key = digest({"files": files, "rest": _REST, "compiler": read_name(), "recipe": _RECIPE})[:24]
    folder = cache / PROGRAM / key
    if not (folder / PROGRAM).is_file():
        toolchain = ensure_toolchain(cache, progress)
        waiting = f"{PROGRAM}: waiting for another run that compiles it"
        with locked(folder.parent / "lock", waiting, progress):
            if not (folder / PROGRAM).is_file():
                progress(f"{PROGRAM}: compiling {source}")
                with new_build(folder) as work:
                    _make(source, list(files), work, toolchain)
    program = folder / PROGRAM
    says = f"compiled from {source} ({key[:12]}), with a rest in times(2)"
    return Packetdrill(program, says, file_sha256(program))


def _make(source: Path, files: list[str], work: Path, toolchain: Toolchain) -> None:
    tree = work / "source"
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, tree / name)
    (tree / "rest-in-times.c").write_text(_REST)
    compiler = f"gcc --sysroot={toolchain.folder}"
    libraries = "-static -Wl,--wrap=times rest-in-times.o -lpthread -lrt -ldl"
    make = (toolchain.program("make"), "-f", _MAKEFILE, f"CC={compiler}", "SHELL=sh")
    for argv in ((*make, "rest-in-times.o"), (*make, f"packetdrill-ext-libs={libraries}", PROGRAM)):
        done = proc.run(argv, cwd=tree, env=toolchain.environment, timeout_s=_MAKE_S, check=False)
        if done.returncode != 0:
            raise BuildError(f"{source} does not compile:\n{done.stderr.strip()[-2000:]}")
    strip = (toolchain.program("strip"), "-o", str(work / PROGRAM), str(tree / PROGRAM))
    proc.run(strip)
    (work / PROGRAM).chmod(0o755)
    shutil.rmtree(tree)
