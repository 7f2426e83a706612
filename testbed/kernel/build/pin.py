"""Pinned kernels: one folder for each version, with its source, configuration and patches.

A pin names the exact Debian source package (https://manpages.debian.org/deb-version.7), its file in
Debian's archive, and the SHA-256 of the tarball inside; the hashes of configuration and patches are
computed, never stored.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.base.debian import MAIN
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.root.lock import LockedPackage, list_entry_problems

PINS = Path(__file__).parents[1] / "pins"
DEFAULT_VERSION = "7.3"

_TEXTS = ("package", "package_version", "suite", "tarball", "tarball_sha256", "taken")


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned kernel.

    ``version`` is what ``--kernel-version`` takes.  ``boot`` are the words that this kernel wants
    on its command line beyond those of every kernel.  ``patches`` are in the order of application.
    ``file`` is the package as Debian's archive had it at ``taken`` (UTC).
    """

    version: str
    package: str
    package_version: str
    suite: str
    tarball: str
    tarball_sha256: str
    taken: str
    file: LockedPackage
    boot: tuple[str, ...]
    config: Path
    patches: tuple[Path, ...]

    @property
    def config_sha256(self) -> str:
        """SHA-256 of the configuration fragment."""
        return file_sha256(self.config)

    @property
    def patch_sha256(self) -> dict[str, str]:
        """SHA-256 of each patch by its file name, in the order of application."""
        return {patch.name: file_sha256(patch) for patch in self.patches}


def pins(folder: Path = PINS) -> tuple[str, ...]:
    """Return the versions that are pinned, the default first."""
    versions = sorted(path.parent.name for path in folder.glob("*/pin.toml"))
    return tuple(sorted(versions, key=lambda version: version != DEFAULT_VERSION))


def read_pin(version: str, folder: Path = PINS) -> Pin:
    """Return the pin of ``version``.

    Raises:
        ConfigurationError: there is no such pin, or its folder is not complete.
    """
    known = pins(folder)
    if version not in known:
        hint = did_you_mean(version, known)
        raise ConfigurationError(
            [f"no kernel {version!r} is pinned{hint}; pinned are: {', '.join(known)}"]
        )
    home = folder / version
    table = tomllib.loads((home / "pin.toml").read_text())
    problems = pin_problems(table, home)
    if problems:
        raise ConfigurationError(problems)
    return Pin(
        version=version,
        file=LockedPackage(table["package"], table["package_version"], MAIN, **table["file"]),
        boot=tuple(table["boot"]),
        config=home / "kernel.config",
        patches=tuple(sorted((home / "patches").glob("*.patch"))),
        **{key: table[key] for key in _TEXTS},
    )


def pin_problems(table: dict[str, object], home: Path) -> list[str]:
    """Return one sentence for everything that is wrong with a pin folder."""
    name = home / "pin.toml"
    valid = (*_TEXTS, "boot", "file")
    problems = [f"{name}: {key}: not a text" for key in _TEXTS if not _is_text(table.get(key))]
    problems += [
        f"{name}: unknown key {key!r}{did_you_mean(key, valid)}"
        for key in table
        if key not in valid
    ]
    boot = table.get("boot")
    if not isinstance(boot, list) or not all(_is_text(word) and " " not in word for word in boot):
        problems.append(f"{name}: boot: not a list of words without spaces")
    file = table.get("file")
    if not isinstance(file, dict):
        problems.append(f"{name}: file: not a table of path, size, sha256")
    else:
        entry = {"name": table.get("package"), "version": table.get("package_version"),
                 "archive": MAIN, **file}  # fmt: skip
        problems += [f"{name}: file: {problem}" for problem in list_entry_problems(entry)]
    if not (home / "kernel.config").is_file():
        problems.append(f"{home / 'kernel.config'}: missing")
    return problems


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
