"""Bundle: everything of ours that a guest runs, in one folder named by its content.

A copy rather than the work tree, so that an edit, a checkout or a stale ``__pycache__`` during a
run reaches no guest, and so that the folder's hash says which code made a result.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from testbed.base import log, sources
from testbed.base.checksums import damaged_files, file_sha256, write_checksums
from testbed.base.errors import MissingError
from testbed.client.command import OWN_FOLDER
from testbed.kinds import KINDS
from testbed.lab.link.bundled import TRACES as READ_FROM
from testbed.model.trace import Trace
from testbed.root.cache import Root
from testbed.root.interpreter import compile_python

_log = log.logger(__name__)
# What runs in a guest or an enclosure; the bundle has what they import, and nothing else of ours,
# but for what they read.
PROGRAMS = (*("testbed.runner.guest_entry", "testbed.runner.host_entry"),
            *("testbed.client.graph_process.main", "testbed.kinds.command.prompt"),
             *("testbed.server.quic_program", "testbed.server.choice_program"),
             "testbed.server.channel_program",
            *(kind.performance for kind in KINDS.values()))  # fmt: skip
DATA = ("client/chromium/pinned.js",)
NATIVE = ("event-server", "init", "keyshare.so", "link", "load-generator", "start", "tfo.so")
TRACES = READ_FROM.name
_BESIDE = (".new-", ".old-")
FONTS_CONF = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts/truetype/dejavu</dir>
  <cachedir>/tmp/fontconfig</cachedir>
</fontconfig>
"""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A complete bundle and the SHA-256 of what of its content is ours."""

    path: Path
    digest: str


def make_bundle(
    cache: Path, native: Path, root: Root, own: Mapping[str, Path] | None = None,
    traces: Mapping[str, Trace] | None = None,
) -> Bundle:  # fmt: skip
    """Assemble the bundle in ``cache/bundles``, or find the one that has the same content.

    One whose files are no longer those that were put there is assembled again.

    Args:
        cache: the cache folder.
        native: folder with the compiled programs of ``testbed/native``.
        root: whose Python the guests have.
        own: a user's files by their names, which come into a folder of their own.  They make it
            another bundle, of the same digest.
        traces: those of its links, by name, which do that, too.

    Raises:
        MissingError: a part has not been built.
    """
    contents = _contents(native)
    missing = [str(path) for path in contents.values() if not path.is_file()]
    if missing:
        raise MissingError(f"not built yet: {', '.join(missing)}; run ./run.sh or make setup")
    identity = hashlib.sha256()
    for name, path in sorted(contents.items()):
        identity.update(f"{name}\0{file_sha256(path)}\n".encode())
    identity.update(FONTS_CONF.encode())
    digest = identity.hexdigest()
    # Compiled files are for one Python, and change no load.
    identity.update(root.digest.encode())
    for name, path in sorted((own or {}).items()):
        identity.update(f"{name}\0{_mode(path)}\0{file_sha256(path)}\n".encode())
    for name, trace in sorted((traces or {}).items()):
        identity.update(f"{TRACES}/{name}\0{trace.digest}\n".encode())
    folder = cache / "bundles" / identity.hexdigest()[:16]
    damaged = damaged_files(folder) if folder.is_dir() else ()
    if damaged:
        _log.info("the bundle's %s in the cache is damaged; assembling it again", damaged[0])
    if damaged or not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        building, aside = (Path(mkdtemp(prefix=name, dir=folder.parent)) for name in _BESIDE)
        try:
            _fill(building, contents, own or {}, traces or {}, root.usr)
            if damaged:
                folder.rename(aside)  # onto an empty folder, which rename(2) allows
            building.rename(folder)
        except OSError:
            # Another run was faster: its bundle has the same content.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
            shutil.rmtree(aside, ignore_errors=True)
    return Bundle(folder, digest)


def _contents(native: Path) -> dict[str, Path]:
    """Return the files of the bundle by their names in it."""
    files = {"guest.py": sources.PACKAGE / "runner" / "guest_entry.py"}
    data = (sources.PACKAGE / name for name in DATA)
    for file in (*sources.imported_sources(*PROGRAMS), *data):
        files[str(file.relative_to(sources.PACKAGE.parent))] = file
    for name in NATIVE:
        files[f"native/{name}"] = native / name
    return files


def _mode(path: Path) -> int:
    """Return the mode that a user's file has in a bundle: whether it is a program is kept."""
    return 0o755 if path.stat().st_mode & 0o111 else 0o644


def _fill(
    folder: Path, contents: Mapping[str, Path], own: Mapping[str, Path],
    traces: Mapping[str, Trace], usr: Path,
) -> None:  # fmt: skip
    for name, path in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    (folder / "native" / "mnt").mkdir()  # where init assembles the guest's root
    (folder / "etc" / "fonts").mkdir(parents=True)
    (folder / "etc" / "fonts" / "fonts.conf").write_text(FONTS_CONF)
    # Compiled once here, which spares each guest a look at the source's time stamp.
    compile_python(usr, folder, folder, "/ff/bundle")
    for name, path in own.items():
        target = folder / OWN_FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for name, trace in traces.items():
        (folder / TRACES).mkdir(exist_ok=True)
        (folder / TRACES / name).write_bytes(trace.packed)
    write_checksums(folder)
    # Whatever the caller's umask: clients in the guest are another user.
    for path in (folder, *folder.rglob("*")):
        program = path.parent.name == "native" and path.suffix == ""
        path.chmod(0o755 if path.is_dir() or program else 0o644)
    for name, path in own.items():
        (folder / OWN_FOLDER / name).chmod(_mode(path))
