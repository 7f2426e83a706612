"""Debian's archives as this machine names them: apt's source files, debootstrap, the environment.

The files are read (sources.list(5)), so that a machine needs no apt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

APT = Path("/etc/apt")
DEBOOTSTRAP = Path("/usr/share/debootstrap/scripts")
MIRROR_VARIABLE = "FIRSTFLIGHT_DEBIAN_MIRROR"
"""Address of a mirror of Debian's main archive."""
LOCKED_VARIABLE = "FIRSTFLIGHT_LOCKED"
"""Set, nothing takes the place of what a lock names; as the option --locked sets it."""
NEWER = "-newer"
"""How the folder in the cache ends of what was made of packages newer than its lock's."""
MAIN, SECURITY = ARCHIVES = ("debian", "debian-security")

_MIRROR_LIST = "mirror+file:"


def debian_archives() -> dict[str, str]:
    """Return the addresses of mirrors of ``debian`` and ``debian-security``, as far as known.

    Beside a mirror whose address ends with ``/debian`` the other archive is taken to be, where
    nothing says where it is.
    """
    configured = os.environ.get(MIRROR_VARIABLE, "").rstrip("/")
    known = {MAIN: configured} if configured else _read_apt() or _read_debootstrap()
    main = known.get(MAIN, "")
    beside = {SECURITY: f"{main}-security"} if main.endswith(f"/{MAIN}") else {}
    return beside | known


def only_locked() -> bool:
    """Return whether nothing may take the place of what a lock names."""
    return bool(os.environ.get(LOCKED_VARIABLE))


def newer_place(place: Path) -> Path:
    """Return where in the cache is what took the place of ``place``, whose inputs were gone."""
    return place.with_name(f"{place.name}{NEWER}")


def list_places(place: Path) -> tuple[Path, ...]:
    """Return ``place`` and where else in the cache is what may be used in its stead."""
    return (place,) if only_locked() else (place, newer_place(place))


@contextmanager
def locked_only() -> Iterator[None]:
    """Let nothing take the place of what a lock names, for the time of the block."""
    before = os.environ.get(LOCKED_VARIABLE)
    os.environ[LOCKED_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[LOCKED_VARIABLE]
        else:
            os.environ[LOCKED_VARIABLE] = before


def parse_sources_list(text: str) -> Iterator[tuple[str, str]]:
    """Yield suite and address of each line of a ``sources.list`` that offers ``main``'s binaries.

    A suite that is a path, as others than Debian have them, is left out.
    """
    for line in text.splitlines():
        words = re.sub(r"\[[^]]*\]", " ", line.partition("#")[0]).split()
        if len(words) > 3 and words[0] == "deb" and "main" in words[3:] and "/" not in words[2]:
            yield words[2], words[1]


def parse_sources(text: str) -> Iterator[tuple[str, str]]:
    """Yield what ``parse_sources_list`` does, of each paragraph of a ``.sources`` file."""
    plain = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", plain):
        fields = {
            match[1].lower(): match[2].split()
            for match in re.finditer(r"^([A-Za-z-]+):((?:.*\n?)(?:[ \t]+.*\n?)*)", paragraph, re.M)
        }
        if "no" in fields.get("enabled", ()) or "deb" not in fields.get("types", ()):
            continue
        if "main" in fields.get("components", ()):
            for address in fields.get("uris", ()):
                yield from ((s, address) for s in fields.get("suites", ()) if "/" not in s)


def parse_debootstrap(script: str) -> str | None:
    """Return the address that a debootstrap script names as its default mirror."""
    assignment = re.search(r"^\s*default_mirror\s+(\S+)", script, re.MULTILINE)
    return assignment.group(1).strip("'\"").rstrip("/") if assignment else None


def _read_apt() -> dict[str, str]:
    """Return the first address of each archive in apt's files; an archive's name ends it."""
    known: dict[str, str] = {}
    lists = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*.list"))]
    entries = [entry for file in lists for entry in parse_sources_list(_read(file))]
    for file in sorted((APT / "sources.list.d").glob("*.sources")):
        entries += parse_sources(_read(file))
    for _, address in entries:
        for one in _resolve(address):
            name = one.rpartition("/")[2]
            if name in ARCHIVES:
                known.setdefault(name, one)
    return known if MAIN in known else {}


def _resolve(address: str) -> Iterator[str]:
    """Yield the addresses that one of apt's stands for (apt-transport-mirror(1))."""
    if not address.startswith(_MIRROR_LIST):
        yield address.rstrip("/")
        return
    for line in _read(Path(address.removeprefix(_MIRROR_LIST))).splitlines():
        words = line.partition("#")[0].split()
        yield from (word.rstrip("/") for word in words[:1])


def _read_debootstrap() -> dict[str, str]:
    for name in ("debian-common", "sid"):
        if mirror := parse_debootstrap(_read(DEBOOTSTRAP / name)):
            return {MAIN: mirror}
    return {}


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
