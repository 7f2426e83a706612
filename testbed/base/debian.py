"""Packages of Debian, by apt with a private state, as any user (apt.conf(5), sources.list(5)).

The machine's own apt configuration is neither read nor changed, but for where a mirror is; apt
trusts Debian's archive keyring alone (Signed-By), so what it downloads is what Debian's signed
index names.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBOOTSTRAP = Path("/usr/share/debootstrap/scripts")
MIRROR_VARIABLE = "FIRSTFLIGHT_DEBIAN_MIRROR"

_UPDATE_S = 300.0
_DOWNLOAD_S = 1800.0


@dataclass(frozen=True, slots=True)
class PrivateApt:
    """apt's programs, with one suite of one mirror and a state in ``folder``."""

    folder: Path
    options: tuple[str, ...]

    def offered(self, package: str) -> list[str]:
        """Return the versions of ``package`` that the suite has, newest first."""
        return parse_madison(proc.run(["apt-cache", *self.options, "madison", package]).stdout)

    def download(self, package: str, version: str) -> Path:
        """Download a package into ``folder`` and return the file.

        Raises:
            CommandError: apt failed.
            MissingError: not one file came.
        """
        argv = ["apt-get", *self.options, "download", f"{package}={version}"]
        proc.run(argv, timeout_s=_DOWNLOAD_S, cwd=self.folder)
        files = sorted(self.folder.glob("*.deb"))
        if len(files) != 1:
            raise MissingError(f"apt-get downloaded {len(files)} files for {package}, not one")
        return files[0]


def private_apt(suite: str, folder: Path) -> PrivateApt:
    """Return apt with the state in ``folder`` and a fresh index of ``suite``.

    Raises:
        MissingError: the keyring is missing, or no mirror is known.
        CommandError: apt failed.
    """
    mirror = debian_mirror()
    if not KEYRING.is_file():
        raise MissingError(f"{KEYRING} is missing; install the package debian-archive-keyring")
    state = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True)
    (state / "status").touch()
    (state / "debian.sources").write_text(
        f"Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\n"
        f"Architectures: amd64\nTargets: Packages\nSigned-By: {KEYRING}\n"
    )
    settings = {
        "Dir::Etc::SourceList": state / "debian.sources",
        "Dir::Etc::SourceParts": "-",
        "Dir::Etc::Preferences": "-",
        "Dir::Etc::PreferencesParts": "-",
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::Status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",  # apt's own user could not write in here; an ordinary user
        "Acquire::Languages": "none",  # never switches users anyway
    }
    words = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    apt = PrivateApt(folder, ("-qq", *words))
    proc.run(["apt-get", *apt.options, "update"], timeout_s=_UPDATE_S)
    return apt


def debian_mirror() -> str:
    """Return the base address of a mirror of Debian's main archive, without a final slash.

    Raises:
        MissingError: neither the environment, apt nor debootstrap knows one.
    """
    configured = os.environ.get(MIRROR_VARIABLE)
    if configured:
        return configured.rstrip("/")
    if shutil.which("apt-get") is None:
        raise MissingError("cannot fetch a package of Debian: this machine has no apt-get")
    fields = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    targets = proc.run(["apt-get", "indextargets", "--format", fields]).stdout
    mirror = parse_indextargets(targets) or _debootstrap_mirror()
    if mirror is None:
        raise MissingError(
            "no mirror of Debian's main archive is known on this machine; install debootstrap "
            f"and debian-archive-keyring, or set {MIRROR_VARIABLE} to a mirror's address"
        )
    return mirror


def debian_archives() -> dict[str, str]:
    """Return the addresses of mirrors of ``debian`` and ``debian-security``, as far as known.

    A mirror of the one whose address ends with its name is taken to have the other beside it.
    """
    try:
        main = debian_mirror()
    except MissingError:
        return {}
    beside = main.endswith("/debian")
    return {"debian": main} | ({"debian-security": f"{main}-security"} if beside else {})


def parse_indextargets(text: str) -> str | None:
    """Return the first address of Debian's main archive among lines of ``origin|label|address``.

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
    """Return the address that a debootstrap script names as its default mirror."""
    assignment = re.search(r"^\s*default_mirror\s+(\S+)", script, re.MULTILINE)
    return assignment.group(1).strip("'\"").rstrip("/") if assignment else None


def parse_madison(text: str) -> list[str]:
    """Return the package versions that ``apt-cache madison`` printed, newest first."""
    rows = [line.split("|") for line in text.splitlines()]
    versions = [row[1].strip() for row in rows if len(row) == 3 and "Packages" in row[2]]
    return list(dict.fromkeys(versions))


def _debootstrap_mirror() -> str | None:
    for name in ("debian-common", "sid"):
        script = DEBOOTSTRAP / name
        mirror = parse_debootstrap(script.read_text()) if script.is_file() else None
        if mirror:
            return mirror
    return None
