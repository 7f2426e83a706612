"""Container image: what of the cache it carries, made, thinned and left as containers find it.

``python -m firstflight.image parts [PACK] | packages LOCK | finish``, which docker/image.sh calls
as root while an image is built.  But for the last of them it needs no Python packages.
"""

from __future__ import annotations

import compileall
import fnmatch
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from testbed.base import places, proc
from testbed.base.errors import TestbedError
from testbed.base.heartbeat import repeating
from testbed.kernel.build.native import ensure_native
from testbed.kernel.build.pin import DEFAULT_VERSION
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named, find_root
from testbed.root.spec import read_spec
from testbed.setup.parts import STARTER, gather_parts
from testbed.setup.python_packages import RUN, ensure_packages, interpreter
from testbed.setup.root_import import import_pack

USER, GROUP = 1000, 0
"""An image's user, and the group that a user by another id is in (``--user ID:0``)."""
HOME = Path("/var/lib/firstflight")
_TESTS = ("lib/*/site-packages/*/tests",)
_PRECOMPILED = ("analysis", "firstflight", "testbed", "wings")
_WARM_S = 600.0

Progress = Callable[[str], None]


def fill(cache: Path, progress: Progress, pack: Path | None = None) -> None:
    """Make what runs take below ``cache``, or take it from ``pack``, and leave nothing else there.

    Raises:
        TestbedError: a part cannot be had.
    """
    if pack is not None:
        progress(f"taken from {pack.name}, not built: root, kernel, C programs, Python packages")
        import_pack(pack, cache, progress)
    parts = gather_parts((DEFAULT_ROOT,), (DEFAULT_VERSION,), cache, progress)
    python = Path(interpreter()).parents[2]
    remove_others(cache, {python, *parts.values()})
    thin(python, read_spec(STARTER).patterns)
    packages = ensure_packages(RUN, cache, progress)
    thin(packages, _TESTS)
    settle(cache)
    find_root(read_spec(DEFAULT_ROOT), cache)  # notes the times that its files have now
    compile_modules((python / "usr" / "lib", packages / "lib"))


def add_packages(lock: str, cache: Path, progress: Progress) -> None:
    """Make the environment of another lock file below ``cache``.

    Raises:
        TestbedError: packages cannot be had.
    """
    folder = ensure_packages(lock, cache, progress)
    thin(folder, _TESTS)
    settle(folder)
    compile_modules((folder / "lib",))
    open_folders(cache)


def remove_others(cache: Path, kept: Iterable[Path]) -> None:
    """Remove all below ``cache`` but the folders ``kept``: packages, sources, compilers, locks."""
    wanted = [place.resolve() for place in kept]
    for path in sorted(cache.resolve().rglob("*"), reverse=True):
        if any(path == place or place in path.parents for place in wanted):
            continue
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif not any(path in place.parents for place in wanted):
            path.rmdir()


def thin(folder: Path, patterns: Sequence[str]) -> None:
    """Remove what in ``folder`` matches one of ``patterns``; ``*`` matches across folders, too."""
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder).as_posix()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def settle(folder: Path) -> None:
    """Cut times to whole seconds, which is what layers of an image keep.

    Otherwise each container would find other times than were noted, and read all files of a part.
    """
    for path in (folder, *folder.rglob("*")):
        whole_s = int(path.lstat().st_mtime)
        os.utime(path, (whole_s, whole_s), follow_symlinks=False)


def compile_modules(folders: Iterable[Path]) -> None:
    """Compile all Python modules in ``folders``: a container's user may not be able to."""
    for folder in folders:
        compileall.compile_dir(folder, quiet=2, workers=0)


def warm(cache: Path, progress: Progress) -> None:
    """Make what a run makes of this tree: the pages, and the bundle of what guests run.

    Raises:
        TestbedError: one cannot be made.
    """
    # Imported here: these need Python packages.
    from testbed.pages.build import build_page
    from testbed.pages.catalogue import list_pages, read_kind
    from testbed.setup.bundle import make_bundle

    root = ensure_named(DEFAULT_ROOT, cache, progress)
    make_bundle(cache, ensure_native(cache, progress), root)
    for folder in list_pages(places.PAGES):
        if read_kind(folder) != "recipe":  # whose packages would have to be downloaded
            build_page(folder, cache)


def open_folders(cache: Path) -> None:
    """Let the image's user, and whoever is in its group, make further parts in the cache."""
    for path in cache.glob("*/lock"):
        path.unlink()
    for folder in (HOME, places.RESULTS, cache, *(path for path in cache.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, USER, GROUP)
        folder.chmod(0o2775)


def finish(cache: Path) -> None:
    """Make what depends on this tree, add the user, and let nobody become another in here."""
    compile_modules(places.ROOT / name for name in _PRECOMPILED)
    python = ensure_packages(RUN, cache, print) / "bin" / "python"
    proc.run((str(python), "-P", "-m", "firstflight.image", "warm"), timeout_s=_WARM_S)
    open_folders(cache)
    users = Path("/etc/passwd")
    if not any(line.split(":")[2] == str(USER) for line in users.read_text().splitlines()):
        with users.open("a") as stream:
            stream.write(f"firstflight:x:{USER}:{GROUP}::{HOME}:/bin/sh\n")
    proc.run(("find", "/", "-xdev", "-perm", "/6000", "-type", "f", "-exec", "chmod", "a-s", "{}",
              "+"))  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Take the step of an image's making that the words name."""
    step, *rest = arguments
    cache = places.cache()
    try:
        with repeating(_say) as progress:
            steps: Mapping[str, Callable[[], None]] = {
                "parts": lambda: fill(cache, progress, Path(rest[0]) if rest else None),
                "packages": lambda: add_packages(rest[0], cache, progress),
                "warm": lambda: warm(cache, progress),
                "finish": lambda: finish(cache),
            }
            steps[step]()
    except TestbedError as error:
        _say(f"error: {error}")
        return error.exit_code
    return 0


def _say(message: str) -> None:
    print(f"firstflight: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
