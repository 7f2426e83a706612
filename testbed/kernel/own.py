"""Own kernels: a name for a base with the user's patches, git tree or configuration.

Each is a folder in the user's data folder: ``kernel.json`` says what it is made of, ``patches/``
holds its patches, and ``kernel.config`` the options that it changes.  What is built of it is in the
cache, under a key of all that decides the binary, so that equal kernels are built once.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.heartbeat import repeating
from testbed.base.suggest import did_you_mean
from testbed.base.whole_folder import OccupiedError, new_folder
from testbed.kernel.build import (
    BINARY_FILE,
    LOG_FILE,
    OBJECTS,
    KernelBuild,
    KernelIdentity,
    build_lock,
    new_build,
    objects_folder,
    read_identity,
    write_identity,
)
from testbed.kernel.compiler import (
    RECIPE,
    BuildError,
    check_machine,
    parse_config,
    read_compiler,
)
from testbed.kernel.git import GitSource, objects_of, resolve
from testbed.kernel.objects import KernelRecipe, Source, build_in, check_patches
from testbed.kernel.patches import Patch, PatchError, read_patch, read_series
from testbed.kernel.pin import DEFAULT_VERSION, Pin, pins, read_pin
from testbed.kernel.source import Progress, fetch_source

DEFINITION_FILE = "kernel.json"
_FRAGMENT_FILE = "kernel.config"
_OBJECTS = "git-objects"
_SCHEMA = 1
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,39}")
_OPTION = re.compile(r"CONFIG_[A-Za-z0-9_]+=.*|#.*")
_RESERVED = frozenset({"host", "virtual", "native"})


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A kernel of the user's own.

    Attributes:
        name: what ``--kernel-version`` takes.
        base: the pinned kernel whose configuration and patches come first, and whose source it is
            unless there is a ``git`` tree.
        patches: the user's, in the order of application.
        options: what its configuration has otherwise than the base's, option to value.
        git: the source; ``None``: the base's.
    """

    name: str
    base: str
    patches: tuple[Patch, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    git: GitSource | None = None

    @property
    def pin(self) -> Pin:
        """The pinned kernel that it is based on."""
        return read_pin(self.base)

    @property
    def own_sha256(self) -> dict[str, str]:
        """SHA-256 of each patch of the user's by its name."""
        return {f"own/{patch.name}": patch.sha256 for patch in self.patches}

    def render_config(self) -> str:
        """Return the configuration that it asks for: the base's with its own options."""
        asked = parse_config(self.pin.config.read_text()) | dict(self.options)
        lines = (
            f"# {name} is not set" if value == "n" else f"{name}={value}"
            for name, value in asked.items()
        )
        return "\n".join(lines) + "\n"


def own_kernels(home: Path) -> tuple[str, ...]:
    """Return the names of the kernels in the data folder ``home``, sorted."""
    found = (home / "kernels").glob(f"*/{DEFINITION_FILE}")
    return tuple(sorted(path.parent.name for path in found if _NAME.fullmatch(path.parent.name)))


def read_own(name: str, home: Path) -> OwnKernel:
    """Return the kernel ``name`` in the data folder ``home``.

    Raises:
        ConfigurationError: there is none, or its folder is not whole.
    """
    known = own_kernels(home)
    if name not in known:
        everything = (*pins(), *known)
        hint = did_you_mean(name, everything)
        raise ConfigurationError(
            [f"no kernel {name!r}{hint}; there are: {', '.join(everything)}; "
             "./run.sh kernel add makes one of a patch or a git tree"]
        )  # fmt: skip
    folder = home / "kernels" / name
    try:
        document = json.loads((folder / DEFINITION_FILE).read_text("utf-8"))
        return _parse(name, folder, document, home)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            [f"{folder / DEFINITION_FILE}: not what ./run.sh kernel add writes ({error}); "
             f"remove it with ./run.sh kernel remove {name}, and add it again"]
        ) from None  # fmt: skip


def define(
    name: str,
    home: Path,
    *,
    base: str | None,
    patches: Sequence[Path],
    fragments: Sequence[Path],
    git: Path | None,
    revision: str | None,
) -> OwnKernel:
    """Return the kernel that the user asks for; nothing is written but objects of a work tree.

    ``base`` is a pinned kernel or one of the user's, whose source, patches and options are taken
    on; without it, of a git tree the pinned kernel whose patches fit, else the default.

    Raises:
        ConfigurationError: with every problem: the name, the base, a file, the tree.
    """
    problems = name_problems(name)
    first = OwnKernel(name, DEFAULT_VERSION)
    series: tuple[Patch, ...] = ()
    options: dict[str, str] = {}
    if revision is not None and git is None:
        problems.append("--rev names a revision of a git tree: give --git DIR, too")
    if base is not None:
        try:
            first = replace(_read_base(base, home), name=name)
        except ConfigurationError as error:
            problems += error.problems
    if git is not None and first.git is not None:
        problems.append(f"--base {base} has a source of its own: leave out --git, or name a pin")
    try:
        series = read_series(patches, first=len(first.patches) + 1)
    except ConfigurationError as error:
        problems += error.problems
    for fragment in fragments:
        try:
            options |= _read_fragment(fragment)
        except ValueError as error:
            problems.append(f"{fragment}: {error}")
    source = first.git
    if git is not None and not problems:
        source = resolve(git, revision, home / _OBJECTS)
    if problems:
        raise ConfigurationError(problems)
    own = replace(
        first,
        patches=(*first.patches, *series),
        options=tuple({**dict(first.options), **options}.items()),
        git=source,
    )
    return own if base is not None or source is None else replace(own, base=_fitting_base(source))


def _read_base(base: str, home: Path) -> OwnKernel:
    return OwnKernel(base, base) if base in pins() else read_own(base, home)


def _fitting_base(git: GitSource) -> str:
    """Return the pinned kernel whose patches fit a git tree, looked for from the nearest on.

    Raises:
        ConfigurationError: none fits; the message says for each what does not.
    """
    version = _numbers(git.version)
    problems = []
    for base in sorted(pins(), key=lambda base: _distance(_numbers(base), version)):
        try:
            check_patches(_recipe(OwnKernel(base, base), git, read_pin(base).config))
        except PatchError as error:
            problems.append(f"of {base}: {error}")
        else:
            return base
    raise ConfigurationError(
        [
            f"{git.repository}: none of the testbed's own sets of patches, which make a kernel run "
            "in virtual time, fits this source (docs/own-kernels.md says which ones do)",
            *problems,
        ]
    )


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = (*version.split("."), "0")
    return int(major), int(minor)


def _distance(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return abs(one[0] - other[0]), abs(one[1] - other[1])


def _read_fragment(file: Path) -> dict[str, str]:
    """Return the options in a file such as ``make savedefconfig`` writes."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not _OPTION.fullmatch(line.strip()):
            raise ValueError(
                f"line {number} is no option of a kernel, such as CONFIG_NAME=y: {line.strip()!a}"
            )
    options = parse_config(text)
    if not options:
        raise ValueError("names no option, such as CONFIG_NAME=y")
    return options


def _parse(name: str, folder: Path, document: Mapping[str, Any], home: Path) -> OwnKernel:
    """Return the kernel that a definition says; ValueError and the like where it is none."""
    if document["schema"] != _SCHEMA:
        raise ValueError(f"schema {document['schema']!a}")
    if document["base"] not in pins():
        raise ValueError(f"its base {document['base']!a} is not pinned any more")
    patches = (
        replace(read_patch(folder / "patches" / Path(entry["file"]).name), subject=entry["subject"])
        for entry in document["patches"]
    )
    git = document["git"] and {**document["git"], "repository": Path(document["git"]["repository"])}
    if git:
        git["objects"] = objects_of(git["repository"], home / _OBJECTS)
    return OwnKernel(
        name,
        document["base"],
        tuple(patches),
        tuple(document["options"].items()),
        GitSource(**git) if git else None,
    )


def _recipe(own: OwnKernel, source: Source, fragment: Path) -> KernelRecipe:
    patches = (*map(read_patch, own.pin.patches), *own.patches)
    return KernelRecipe(own.name, source, patches, fragment)


def name_problems(name: str) -> list[str]:
    """Return what is wrong with the name of a kernel."""
    if _NAME.fullmatch(name) and name not in _RESERVED:
        return []
    return [
        f"{name!r} cannot be a kernel's name: it begins with a small letter and has small letters, "
        f"digits, dots, dashes and underscores, 40 at most, and is none of {sorted(_RESERVED)}"
    ]


def write_own(own: OwnKernel, home: Path, *, replaced: bool) -> Path:
    """Write the definition of ``own`` to the data folder ``home``, and return its folder.

    Raises:
        ConfigurationError: one of that name is there, and is not to be replaced.
        StorageError: it cannot be written.
    """
    folder = home / "kernels" / own.name
    git = own.git and {
        "repository": str(own.git.repository),
        "revision": own.git.revision,
        "commit": own.git.commit,
        "tree": own.git.tree,
        "version": own.git.version,
    }
    document = {
        "schema": _SCHEMA,
        "base": own.base,
        "patches": [{"file": patch.name, "subject": patch.subject} for patch in own.patches],
        "options": dict(own.options),
        "git": git,
    }
    try:
        with new_folder(folder, replace=replaced) as scratch:
            (scratch / "patches").mkdir()
            for patch in own.patches:
                (scratch / "patches" / patch.name).write_text(patch.text, "utf-8")
            text = json.dumps(document, indent=2) + "\n"
            (scratch / DEFINITION_FILE).write_text(text, "utf-8")
    except OccupiedError:
        raise ConfigurationError(
            [f"a kernel {own.name!r} is there; choose another name, or give --replace"]
        ) from None
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror}; free space, or set XDG_DATA_HOME to a "
            "folder that you may write to"
        ) from None
    return folder


def remove_own(name: str, home: Path, cache: Path) -> None:
    """Remove a kernel's definition, and what was built of it unless another name has the same.

    Raises:
        ConfigurationError: there is none of that name.
        StorageError: it cannot be removed.
    """
    if name not in own_kernels(home):
        read_own(name, home)  # says which there are
    folder = home / "kernels" / name
    try:
        own = read_own(name, home)
    except ConfigurationError:
        own = None
    try:
        shutil.rmtree(folder)
        if own is not None:
            others = (read_own(other, home) for other in own_kernels(home))
            keys = {key_of(other) for other in others}
            if key_of(own) not in keys:
                shutil.rmtree(build_place(own, cache), ignore_errors=True)
    except OSError as error:
        raise StorageError(f"cannot remove {folder}: {error.strerror}") from None


def forget_own(name: str, home: Path) -> None:
    """Remove a kernel's definition; what was built of it stays in the cache."""
    shutil.rmtree(home / "kernels" / name, ignore_errors=True)


def key_of(own: OwnKernel) -> str:
    """Return the SHA-256 hex of all that decides the binary."""
    pin = own.pin
    document = {
        "source": own.git.tree if own.git else pin.tarball_sha256,
        "config": hashlib.sha256(own.render_config().encode()).hexdigest(),
        "patches": {**pin.patch_sha256, **own.own_sha256},
        "compiler": read_compiler(),
        "recipe": RECIPE,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def build_place(own: OwnKernel, cache: Path) -> Path:
    """Return the folder where the build of ``own`` is, or will be."""
    return cache / "kernels" / "own" / key_of(own)[:24]


def find_own(own: OwnKernel, cache: Path) -> KernelBuild | None:
    """Return the build of ``own`` if the cache has it, whole."""
    folder = build_place(own, cache)
    identity = read_identity(folder)
    binary = folder / BINARY_FILE
    if identity is None or not binary.is_file():
        return None
    if file_sha256(binary) != identity.binary_sha256:
        return None
    return KernelBuild(binary, replace(identity, version=own.name), own.pin.boot)


def ensure_own(
    own: OwnKernel,
    cache: Path,
    jobs: int,
    progress: Progress,
    check: Callable[[KernelBuild], str | None],
) -> KernelBuild:
    """Return the build of ``own``, made now unless the cache has it.

    ``check`` looks at a new build, such as by booting it, and returns what is wrong with it; such a
    build is not kept.

    Raises:
        PatchError: a patch does not apply.
        BuildError: it does not compile, or ``check`` has refused it.
        MissingError: build packages, the source, or an asked option are not to be had.
    """
    if found := find_own(own, cache):
        return found
    check_machine()
    folder = build_place(own, cache)
    with repeating(progress) as report, build_lock(own.pin, cache, report):
        if found := find_own(own, cache):  # another run may have built it
            return found
        source, objects = _open_source(own, cache, report)
        with new_build(folder) as work:
            (work / _FRAGMENT_FILE).write_text(own.render_config())
            recipe = _recipe(own, source, work / _FRAGMENT_FILE)
            compiler = read_compiler()
            build_in(
                objects, recipe, compiler=compiler, binary=work / BINARY_FILE,
                log=work / LOG_FILE, jobs=jobs, progress=report,
            )  # fmt: skip
            identity = _identify(own, compiler, file_sha256(work / BINARY_FILE))
            write_identity(work, identity)
            report(f"kernel {own.name}: booting it once")
            if problem := check(KernelBuild(work / BINARY_FILE, identity, own.pin.boot)):
                raise BuildError(f"kernel {own.name} {problem}")
    progress(f"kernel {own.name}: ready")
    return KernelBuild(folder / BINARY_FILE, identity, own.pin.boot)


def _open_source(own: OwnKernel, cache: Path, progress: Progress) -> tuple[Source, Path]:
    """Return the source of ``own``, fetched if need be, and the folder of its object tree."""
    if own.git is not None:
        name = own.git.objects.name
        return own.git, cache / "kernels" / OBJECTS / f"git-{name}"
    source = fetch_source(own.pin, cache, progress)
    return source, objects_folder(own.pin, source, cache)


def _identify(own: OwnKernel, compiler: str, binary_sha256: str) -> KernelIdentity:
    pin = own.pin
    git = own.git
    return KernelIdentity(
        version=own.name,
        package="git" if git else pin.package,
        package_version=f"{git.version} {git.commit[:12]}" if git else pin.package_version,
        source_sha256=git.tree if git else pin.tarball_sha256,
        config_sha256=hashlib.sha256(own.render_config().encode()).hexdigest(),
        patches={**pin.patch_sha256, **own.own_sha256},
        compiler=compiler,
        recipe=RECIPE,
        binary_sha256=binary_sha256,
    )
