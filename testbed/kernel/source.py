"""Fetch a pinned kernel source from Debian without touching the machine's apt configuration.

apt runs with a private source list, private state and a private cache (apt.conf(5)), and trusts
Debian's archive keyring alone (sources.list(5), Signed-By).  The tarball is kept, so that a pin
can be rebuilt after Debian has moved on.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed import proc
from testbed.errors import MissingError
from testbed.kernel.pin import Pin, file_sha256, pins, upstream

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBOOTSTRAP = Path("/usr/share/debootstrap/scripts")
MIRROR_VARIABLE = "FIRSTFLIGHT_DEBIAN_MIRROR"

_UPDATE_S = 300.0
_DOWNLOAD_S = 1800.0
_UNPACK_S = 300.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel source tarball on disk, and the exact package version that it came from."""

    tarball: Path
    sha256: str
    package_version: str


def fetch_source(pin: Pin, cache: Path, progress: Progress, allow_revision: bool = False) -> Source:
    """The source of ``pin``: from ``cache`` when it is there, else from a Debian mirror.

    ``allow_revision`` accepts another Debian revision of the same upstream version.  The caller
    holds the pin's build lock.

    Raises:
        MissingError: the source is no longer to be had, or a tool or the keyring is missing.
        CommandError: apt or dpkg-deb failed.
    """
    kept = kept_tarball(pin, cache)
    if kept.is_file() and file_sha256(kept) == pin.tarball_sha256:
        return Source(kept, pin.tarball_sha256, pin.package_version)
    kept.parent.mkdir(parents=True, exist_ok=True)
    for stale in kept.parent.glob(".fetch-*"):
        shutil.rmtree(stale, ignore_errors=True)  # left by a run that was killed
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetch-") as scratch:
        apt = _private_apt(pin, debian_mirror(), Path(scratch))
        progress(f"asking Debian for {pin.package}")
        proc.run([*apt("apt-get"), "update"], timeout_s=_UPDATE_S)
        listing = proc.run([*apt("apt-cache"), "madison", pin.package]).stdout
        version = choose_version(pin, parse_madison(listing), allow_revision, kept)
        progress(f"downloading {pin.package} {version}")
        wanted = f"{pin.package}={version}"
        proc.run([*apt("apt-get"), "download", wanted], timeout_s=_DOWNLOAD_S, cwd=Path(scratch))
        return _keep(pin, version, _unpack_tarball(pin, Path(scratch)), cache)


def kept_tarball(pin: Pin, cache: Path) -> Path:
    """Where the pinned tarball is kept below ``cache``."""
    return cache / "kernels" / "sources" / pin.tarball_sha256[:12] / pin.tarball


def choose_version(pin: Pin, offered: Iterable[str], allow_revision: bool, kept: Path) -> str:
    """Which of the package versions ``offered`` (newest first) satisfies ``pin``.

    ``kept`` is where a copy of the tarball would be used from, for the message.

    Raises:
        MissingError: none does; the message says what is offered and the ways on.
    """
    versions = list(offered)
    if pin.package_version in versions:
        return pin.package_version
    relatives = [v for v in versions if upstream(v) == upstream(pin.package_version)]
    if relatives and allow_revision:
        return relatives[0]
    ways = [f"choose the other kernel by --kernel-version {v}" for v in pins() if v != pin.version]
    if relatives:
        ways.insert(0, f"accept {relatives[0]} of the same upstream by --allow-kernel-revision")
    ways.append(f"put {pin.tarball} with SHA-256 {pin.tarball_sha256} at {kept}")
    raise MissingError(
        f"kernel {pin.version}: {pin.package} {pin.package_version} is no longer in Debian's "
        f"suite {pin.suite} (offered: {', '.join(versions) or 'nothing'}); {', or '.join(ways)}"
    )


def debian_mirror() -> str:
    """The base address of a mirror of Debian's main archive, without a final slash.

    Raises:
        MissingError: neither the environment, apt nor debootstrap knows one.
    """
    asked = os.environ.get(MIRROR_VARIABLE)
    if asked:
        return asked.rstrip("/")
    if shutil.which("apt-get") is None:
        raise MissingError("cannot fetch the kernel source: this machine has no apt-get")
    fields = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    targets = proc.run(["apt-get", "indextargets", "--format", fields]).stdout
    mirror = parse_indextargets(targets) or _debootstrap_mirror()
    if mirror is None:
        raise MissingError(
            "no mirror of Debian's main archive is known on this machine; install debootstrap "
            f"and debian-archive-keyring, or set {MIRROR_VARIABLE} to a mirror's address"
        )
    return mirror


def parse_indextargets(text: str) -> str | None:
    """The first address of Debian's main archive among lines of ``origin|label|address``.

    Before the first ``apt-get update`` origin and label are empty; then the address decides.
    """
    rows = [line.split("|") for line in text.splitlines() if line.count("|") == 2]
    for origin, label, address in rows:
        if (origin, label) == ("Debian", "Debian"):
            return address.rstrip("/")
    for origin, label, address in rows:
        if not origin and not label and address.rstrip("/").endswith("/debian"):
            return address.rstrip("/")
    return None


def parse_debootstrap(script: str) -> str | None:
    """The address that a debootstrap script names as its default mirror."""
    found = re.search(r"^\s*default_mirror\s+(\S+)", script, re.MULTILINE)
    return found.group(1).strip("'\"").rstrip("/") if found else None


def parse_madison(text: str) -> list[str]:
    """The package versions in the output of ``apt-cache madison``, in its order (newest first)."""
    rows = [line.split("|") for line in text.splitlines()]
    versions = [row[1].strip() for row in rows if len(row) == 3 and "Packages" in row[2]]
    return list(dict.fromkeys(versions))


def _debootstrap_mirror() -> str | None:
    for name in ("debian-common", "sid"):
        script = DEBOOTSTRAP / name
        found = parse_debootstrap(script.read_text()) if script.is_file() else None
        if found:
            return found
    return None


def _private_apt(pin: Pin, mirror: str, scratch: Path) -> Callable[[str], list[str]]:
    """How to call an apt program that knows one suite of one mirror and writes in ``scratch``."""
    if not KEYRING.is_file():
        raise MissingError(f"{KEYRING} is missing; install the package debian-archive-keyring")
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "debian.sources").write_text(
        f"Types: deb\nURIs: {mirror}\nSuites: {pin.suite}\nComponents: main\n"
        f"Architectures: amd64\nTargets: Packages\nSigned-By: {KEYRING}\n"
    )
    settings = {
        "Dir::Etc::SourceList": scratch / "debian.sources",
        "Dir::Etc::SourceParts": "-",
        "Dir::Etc::Preferences": "-",
        "Dir::Etc::PreferencesParts": "-",
        "Dir::State": scratch,
        "Dir::State::Lists": scratch / "lists",
        "Dir::State::Status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "APT::Sandbox::User": "root",  # apt's own user could not write in here; an ordinary user
        "Acquire::Languages": "none",  # never switches users anyway
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    return lambda program: [program, "-qq", *options]


def _unpack_tarball(pin: Pin, scratch: Path) -> Path:
    packages = sorted(scratch.glob("*.deb"))
    if len(packages) != 1:
        raise MissingError(f"apt-get downloaded {len(packages)} files for {pin.package}, not one")
    tree = scratch / "tree"
    proc.run(["dpkg-deb", "-x", str(packages[0]), str(tree)], timeout_s=_UNPACK_S)
    tarball = tree / "usr" / "src" / pin.tarball
    if not tarball.is_file():
        raise MissingError(f"{packages[0].name} holds no {pin.tarball}")
    return tarball


def _keep(pin: Pin, version: str, tarball: Path, cache: Path) -> Source:
    sha256 = file_sha256(tarball)
    if version == pin.package_version and sha256 != pin.tarball_sha256:
        raise MissingError(
            f"{pin.tarball} of {pin.package} {version} has SHA-256 {sha256}, "
            f"but kernel {pin.version} is pinned to {pin.tarball_sha256}; it is not used"
        )
    place = cache / "kernels" / "sources" / sha256[:12] / pin.tarball
    place.parent.mkdir(parents=True, exist_ok=True)
    tarball.replace(place)
    return Source(place, sha256, version)
