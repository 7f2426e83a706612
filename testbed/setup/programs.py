"""Programs of a trial and the files that they load: what a guest runs, and nothing else.

Found as a guest finds it: programs on its PATH, not the caller's; shared libraries by the loader
itself, without the machine's cache of libraries and settings (ld.so(8)).  Each file is named by its
Debian package and version, or by its own SHA-256 where no package owns it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.errors import MissingError
from testbed.client import CLIENTS
from testbed.client.chromium.browser import KNOWN_PATHS
from testbed.client.interface import SAME_PROCESSOR
from testbed.client.program import LIBRARIES, Program
from testbed.kernel.run.enclosure import PATH
from testbed.kernel.run.jail import USR
from testbed.server.think import MODULE as ECHO_MODULE

LOADER = "/lib64/ld-linux-x86-64.so.2"
ABSENT = "not installed"
MERGED = ("/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/lib64/")
PYTHON_EXTENSIONS = (
    *("_bz2", "_ctypes", "_decimal", "_hashlib", "_json", "_lzma", "_ssl", "_typing", "resource"),
)


BASE = (
    Program("dnsmasq", packages="dnsmasq-base"),
    Program("ip", packages="iproute2", version="-V"),
    Program(
        "nginx",
        packages="nginx, libnginx-mod-http-echo",
        version="-v",
        opens=(str(ECHO_MODULE),),
    ),
    Program(
        "python3",
        packages="python3",
        opens=(
            *("/usr/lib/{target}/os.py", "/usr/lib/{target}/json/__init__.py"),
            *(f"/usr/lib/{{target}}/lib-dynload/{name}.*.so" for name in PYTHON_EXTENSIONS),
            # Whatever has a locale opens these.
            *("/usr/lib/locale/C.utf8/LC_CTYPE", f"{LIBRARIES}/gconv/gconv-modules.cache"),
        ),
    ),
    Program("tcpdump", packages="tcpdump"),
)
"""What every trial runs; what a client runs besides, it declares itself."""


def find(program: Program, usr: Path = USR) -> Path | None:
    """Return a program's file in a user land, without links; ``None``: it is not installed."""
    if program.places:
        file = next((path for path in places_in(usr, program.places) if path.is_file()), None)
    else:
        on_path = shutil.which(program.name, path=PATH.replace("/usr", str(usr)))
        file = Path(on_path) if on_path else None
    return file.resolve() if file else None


def places_in(usr: Path, places: Iterable[Path]) -> list[Path]:
    """Return where in a user land the files ``places`` of a machine's are."""
    return [
        usr / place.relative_to(USR) if place.is_relative_to(USR) else place for place in places
    ]


def package_names(program: Program) -> tuple[str, ...]:
    """Return the Debian packages of a program, without versions; its own comes first."""
    return tuple(word.split()[0] for word in program.packages.split(","))


def files_of(program: Program) -> list[Path]:
    """Return a program and what it opens by itself, without links, as far as it is there."""
    file = find(program)
    if file is None:
        return []
    patterns = (word.format(target=file.name, folder=file.parent) for word in program.opens)
    opened = (path for word in patterns for path in Path("/").glob(word.removeprefix("/")))
    return [file, *sorted({path.resolve() for path in opened if path.is_file()})]


def programs_of(clients: Collection[str], browser: Path | None = None) -> tuple[Program, ...]:
    """Return the programs of trials with ``clients``; a client of no program of its own adds none.

    ``browser`` is another than the installed one.
    """
    besides = [program for name in sorted(clients) for program in CLIENTS[name].programs]
    if browser is not None:
        besides = [
            replace(program, places=(browser,)) if program.places == KNOWN_PATHS else program
            for program in besides
        ]
    return (*BASE, *besides)


def read_files(programs: Iterable[Program]) -> dict[str, str]:
    """Return what ``programs`` run and load, as parts of an environment.

    ``package.NAME`` is the version of each Debian package that owns a file of theirs, ``file.PATH``
    the SHA-256 of a file that none owns, or ``not installed`` for a library that is not there.
    """
    opened = {path for program in programs for path in files_of(program)}
    loaded, missing = read_libraries(opened)
    owners = read_owners(opened | loaded)
    packages = read_packages({package for names in owners.values() for package in names})
    parts = {f"package.{name}": version for name, version in packages.items()}
    for path in opened | loaded:
        if path not in owners:
            parts[f"file.{path}"] = file_sha256(path)
    parts |= {f"file.{name}": ABSENT for name in missing}
    return dict(sorted(parts.items()))


def read_libraries(files: Iterable[Path]) -> tuple[set[Path], set[str]]:
    """Return the shared libraries that the loader gives to ``files``, and the names that it misses.

    Files that are no ELF, or are linked statically, need none.

    Raises:
        MissingError: the loader cannot load one of ``files``.
    """
    libraries: set[Path] = set()
    missing: set[str] = set()
    for path in sorted(files):
        with path.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                continue
        # Its own settings only: neither the caller's libraries nor the machine's level of x86-64.
        # As ldd(1) asks: --list would end at the first library that is not there.
        settings = {"GLIBC_TUNABLES": SAME_PROCESSOR, "LD_TRACE_LOADED_OBJECTS": "1"}
        argv = (LOADER, "--inhibit-cache", str(path))
        done = proc.run(argv, timeout_s=20, check=False, env=settings)
        if done.returncode != 0 and _is_dynamic(path):
            raise MissingError(
                f"{path}: its shared libraries cannot be listed ({done.stderr.strip()}); "
                "install its package again"
            )
        listed, absent = parse_list(done.stdout)
        libraries |= {Path(library).resolve() for library in listed}
        missing |= absent
    return libraries, missing


def _is_dynamic(path: Path) -> bool:
    done = proc.run((LOADER, "--verify", str(path)), timeout_s=20, check=False, env={})
    return done.returncode != 1


def parse_list(text: str) -> tuple[set[str], set[str]]:
    """Return what the loader lists: paths of libraries, and names of those that were not found."""
    paths, missing = set(), set()
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" => ")
        if rest == "not found":
            missing.add(name)
        else:
            path = (rest or name).rpartition(" (")[0]
            if path.startswith("/"):  # the kernel's own, linux-vdso.so.1, has none
                paths.add(path)
    return paths, missing


def read_owners(files: Collection[Path]) -> dict[Path, tuple[str, ...]]:
    """Return the Debian packages, with their architecture where dpkg gives it, that own each file.

    dpkg knows a file by the path that it was packed as: in /lib, or in /usr/lib, which are one
    (merged /usr).  A file that no package owns is left out.
    """
    packed = {str(path): path for path in files}
    for path in files:
        if str(path).startswith(MERGED):
            packed[str(path).removeprefix("/usr")] = path
    argv = ("dpkg-query", "--search", *sorted(packed))
    if not files:
        return {}
    try:
        # Its status is 1 as soon as one path has no owner: half of those asked for never have.
        done = proc.run(argv, timeout_s=20, check=False, env={"PATH": PATH, "LC_ALL": "C"})
    except MissingError:
        return {}
    owners: dict[Path, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        names, _, named = line.partition(": ")
        if named in packed and not names.startswith("diversion "):
            owners[packed[named]] = tuple(names.split(", "))
    return owners


def read_packages(names: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each Debian package, by its name without architecture."""
    versions = {name.partition(":")[0]: ABSENT for name in names}
    if not versions:
        return {}
    argv = ("dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *sorted(names))
    try:
        done = proc.run(argv, timeout_s=20, check=False)
    except MissingError:
        return versions
    for line in done.stdout.splitlines():
        name, _, version = line.partition(" ")
        if version:
            versions[name] = version
    return versions


def read_versions(programs: Iterable[Program]) -> dict[str, str]:
    """Read what each program prints as its version, as parts of an environment."""
    return {
        f"program.{program.name}": read_version(find(program), program.version)
        for program in programs
        if program.version
    }


def read_version(program: Path | None, argument: str) -> str:
    """Return the first line that a program prints about its version, or ``not installed``."""
    if program is None:
        return ABSENT
    try:
        done = proc.run((str(program), argument), timeout_s=20, check=False)
    except MissingError:
        return ABSENT
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else f"no answer (status {done.returncode})"


def read_elsewhere(programs: Iterable[Program]) -> dict[str, str]:
    """Find programs on the caller's PATH that guests do not run, as facts of an environment."""
    callers = {
        program.name: shutil.which(program.name) for program in programs if not program.places
    }
    guests = {name: shutil.which(name, path=PATH) for name in callers}
    return {
        f"elsewhere.{name}": f"{path}, which guests do not run ({guests[name] or ABSENT})"
        for name, path in callers.items()
        if path and Path(path).resolve() != Path(guests[name] or "").resolve()
    }
