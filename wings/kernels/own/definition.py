"""Own kernels: a name for a base with the user's patches, git tree or configuration.

Each is a folder in the user's data folder: ``kernel.json`` says what it is made of, and
``patches/`` holds its patches.  ``wings.kernels.own.build`` builds it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from testbed.base import log, places
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.suggest import did_you_mean
from testbed.base.whole_folder import OccupiedError, new_folder
from testbed.kernel.build.compiler import parse_config
from testbed.kernel.build.objects import KernelRecipe, Source, check_patches
from testbed.kernel.build.patches import Patch, PatchError, read_patch, read_series
from testbed.kernel.build.pin import DEFAULT_VERSION, Pin, pins, read_pin
from testbed.kernel.build.toolchain import ensure_toolchain
from wings.kernels.own.git import GitSource, objects_of, resolve

_log = log.logger(__name__)

DISPENSABLE = {"tcp-manage-connections-under-overload.patch": "a server has no overload mechanisms",
               "um-images-of-a-guest.patch": "each guest boots, which costs more"}  # fmt: skip
"""What a kernel lacks without those of the pins' patches that it can do without."""
ADDITIONS = places.ROOT / "kernels" / "additions"
"""Named options that a kernel may have beside the usual ones, as ``--config NAME``; the patches
NAME.patch and NAME-BASE.patch come with them."""
DEFINITION_FILE = "kernel.json"
PATCHES_FOLDER = "patches"
_OBJECTS = "git-objects"
_SCHEMA = 1
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,39}")
_OPTION = re.compile(r"CONFIG_[A-Za-z0-9_]+=.*|#.*")
_OLDER_NAMES = {((7, 3), "CONFIG_SYSCTL"): "CONFIG_PROC_SYSCTL"}
"""How options are asked for before a version: there the newer name cannot be."""
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
        omitted: those of the base's patches that do not fit a git tree and can be done without.
    """

    name: str
    base: str
    patches: tuple[Patch, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    git: GitSource | None = None
    omitted: tuple[str, ...] = ()

    @property
    def pin(self) -> Pin:
        """The pinned kernel that it is based on."""
        return read_pin(self.base)

    @property
    def source(self) -> str:
        """What its source is, for people."""
        pin = self.pin
        return self.git.describe() if self.git else f"{pin.package} {pin.package_version}"

    @property
    def all_patches(self) -> tuple[Patch, ...]:
        """The base's patches, then the user's."""
        base = (read_patch(file) for file in self.pin.patches if file.name not in self.omitted)
        return (*base, *self.patches)

    @property
    def patch_sha256(self) -> dict[str, str]:
        """SHA-256 of each patch by its name, the user's as ``own/NAME``."""
        pinned = self.pin.patch_sha256
        base = {name: pinned[name] for name in pinned if name not in self.omitted}
        return base | {f"own/{patch.name}": patch.sha256 for patch in self.patches}

    @property
    def shadowed(self) -> bool:
        """Whether it keeps a shadow of its memory (CONFIG_KASAN)."""
        return dict(self.options).get("CONFIG_KASAN") == "y"

    @property
    def apart(self) -> str:
        """Why all of it is compiled otherwise than the base, in a word; empty: it is not."""
        leaks = dict(self.options).get("CONFIG_DEBUG_KMEMLEAK") == "y"
        return "shadowed" if self.shadowed else "leaks" if leaks else ""

    def render_config(self) -> str:
        """Return the configuration that it asks for: the base's with its own options."""
        config = parse_config(self.pin.config.read_text())
        if self.git is not None:
            config = _rename_options(config, _numbers(self.git.version))
        config |= dict(self.options)
        lines = (f"# {name} is not set" if value == "n" else f"{name}={value}"
                 for name, value in config.items())  # fmt: skip
        return "\n".join(lines) + "\n"


def own_kernels(home: Path) -> tuple[str, ...]:
    """Return the names of the kernels in the data folder ``home``, sorted."""
    definitions = (home / "kernels").glob(f"*/{DEFINITION_FILE}")
    return tuple(
        sorted(path.parent.name for path in definitions if _NAME.fullmatch(path.parent.name))
    )


def read_own(name: str, home: Path) -> OwnKernel:
    """Return the kernel ``name`` in the data folder ``home``.

    Raises:
        ConfigurationError: there is none, or its folder is not whole.
    """
    names = own_kernels(home)
    if name not in names:
        everything = (*pins(), *names)
        hint = did_you_mean(name, everything)
        raise ConfigurationError(
            [f"no kernel {name!r}{hint}; there are: {', '.join(everything)}; "
             "./run.sh kernel add makes one of a patch or a git tree"]
        )  # fmt: skip
    folder = home / "kernels" / name
    try:
        patches = (folder / PATCHES_FOLDER).glob("*.patch")
        texts = {f"{PATCHES_FOLDER}/{path.name}": path.read_text("utf-8") for path in patches}
        texts[DEFINITION_FILE] = (folder / DEFINITION_FILE).read_text("utf-8")
        return parse_definition(name, texts, home)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            [f"{folder / DEFINITION_FILE}: not what ./run.sh kernel add writes ({error}); "
             f"remove it with ./run.sh kernel remove {name}, and add it again"]
        ) from None  # fmt: skip


def read_kernel(name: str, home: Path) -> OwnKernel:
    """Return the kernel ``name``: a pinned one as it is, or one in the data folder ``home``.

    Raises:
        ConfigurationError: as ``read_own``.
    """
    return OwnKernel(name, name) if name in pins() else read_own(name, home)


def define(name: str, home: Path, *, base: str | None, patches: Sequence[Path],
           fragments: Sequence[Path], git: Path | None, revision: str | None, fuzz: int = 0,
           reverse: bool = False) -> OwnKernel:  # fmt: skip
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
            first = replace(read_kernel(base, home), name=name)
        except ConfigurationError as error:
            problems += error.problems
    if git is not None and first.git is not None:
        problems.append(f"--base {base} has a source of its own: leave out --git, or name a pin")
    try:
        series = read_series(patches, len(first.patches) + 1, fuzz=fuzz, reverse=reverse)
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
    own = replace(first, patches=(*first.patches, *series),
                  options=tuple({**dict(first.options), **options}.items()),
                  git=source)  # fmt: skip
    if git is not None and source is not None:
        own = _fitted(own, source, base)
    added = read_series(_patches_of(fragments, own), len(own.patches) + 1)
    return replace(own, patches=(*own.patches, *added))


def _fitted(own: OwnKernel, git: GitSource, base: str | None) -> OwnKernel:
    """Return ``own`` on the pinned kernel whose patches fit the git tree, the nearest first.

    ``base`` is the only one to look at, if it is asked for.  Those of ``DISPENSABLE`` are left out
    where they do not fit.

    Raises:
        ConfigurationError: none fits; the message says for each what does not.
    """
    toolchain = ensure_toolchain(places.cache(), _log.info)
    version = _numbers(git.version)
    near = sorted(pins(), key=lambda name: _distance(_numbers(name), version))
    problems = []
    for name in [own.base] if base is not None else near:
        for omitted in _subsets(name):
            candidate = OwnKernel(name, name, git=git, omitted=omitted)
            try:
                recipe = recipe_for(candidate, git, read_pin(name).config)
                check_patches(recipe, toolchain)
            except PatchError as error:
                problem = f"of {name}: {error}"
            else:
                return replace(own, base=name, omitted=omitted)
        problems.append(problem)
    raise ConfigurationError(
        [f"{git.repository}: none of the testbed's own sets of patches, which make a kernel run "
         "in virtual time, fits this source (wings/kernels/docs/patches.md says which ones do)",
         *problems]
    )  # fmt: skip


def _rename_options(config: Mapping[str, str], version: tuple[int, int]) -> dict[str, str]:
    older = {new: old for (since, new), old in _OLDER_NAMES.items() if version < since}
    return {older.get(name, name): value for name, value in config.items()}


def _subsets(base: str) -> Iterator[tuple[str, ...]]:
    """Yield what to leave out of a pinned kernel's patches: nothing first, all that may go last."""
    names = [file.name for file in read_pin(base).patches if what_is_lost(file.name) is not None]
    for count in range(len(names) + 1):
        yield from combinations(names, count)


def what_is_lost(patch: str) -> str | None:
    """Return what a kernel lacks without this patch file of a pin; ``None``: it takes that."""
    return DISPENSABLE.get(patch.partition("-")[2])


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = (*version.split("."), "0")
    return int(major), int(minor)


def _distance(version: tuple[int, int], other_version: tuple[int, int]) -> tuple[int, int]:
    return abs(version[0] - other_version[0]), abs(version[1] - other_version[1])


def _read_fragment(file: Path) -> dict[str, str]:
    """Return the options in a file such as ``make savedefconfig`` writes, or the one it is.

    A word may be the name of one of ``ADDITIONS`` as well.

    Raises:
        ValueError: with what is wrong.
    """
    if _OPTION.fullmatch(str(file)) and not file.exists():
        return _without_modules(parse_config(str(file)))
    if _is_addition(file):
        file = ADDITIONS / f"{file}.config"
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        there = ", ".join(sorted(path.stem for path in ADDITIONS.glob("*.config")))
        raise ValueError(f"cannot be read: {error}; by name there are: {there}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not _OPTION.fullmatch(line.strip()):
            raise ValueError(
                f"line {number} is no option of a kernel, such as CONFIG_NAME=y: {line.strip()!a}"
            )
    options = parse_config(text)
    if not options:
        raise ValueError("names no option, such as CONFIG_NAME=y")
    return _without_modules(options)


def _is_addition(fragment: Path) -> bool:
    named = ADDITIONS / f"{fragment}.config"
    return fragment.parent == Path() and not fragment.exists() and named.is_file()


def _patches_of(fragments: Sequence[Path], own: OwnKernel) -> list[Path]:
    """Return the patches that come with the ``fragments`` and that ``own`` has not yet."""
    known = {patch.sha256 for patch in own.patches}
    named = (ADDITIONS / f"{fragment}{version}.patch" for fragment in fragments
             if _is_addition(fragment) for version in ("", f"-{own.base}"))  # fmt: skip
    return [file for file in named if file.is_file() and read_patch(file).sha256 not in known]


def _without_modules(options: dict[str, str]) -> dict[str, str]:
    modules = [name for name, value in options.items() if value == "m"]
    if modules:
        others = f" and {len(modules) - 3} more" if len(modules) > 3 else ""
        raise ValueError(
            f"{', '.join(modules[:3])}{others}: guests load no modules; =y builds them in, and of "
            "a configuration for hardware take only what User-Mode Linux has (no PCI, USB, ACPI)"
        )
    return options


def parse_definition(name: str, texts: Mapping[str, str], home: Path) -> OwnKernel:
    """Return the kernel that the files of a definition describe, the inverse of rendering it.

    Raises:
        ValueError: they describe none.
    """
    try:
        document = json.loads(texts[DEFINITION_FILE])
        if document["schema"] != _SCHEMA:
            raise ValueError(f"schema {document['schema']!a}")
        if document["base"] not in pins():
            raise ValueError(f"its base {document['base']!a} is not pinned any more")
        patches = tuple(Patch(entry["file"], entry["subject"],
                              texts[f"{PATCHES_FOLDER}/{entry['file']}"], entry.get("fuzz", 0),
                              entry.get("reverse", False))
                        for entry in document["patches"])  # fmt: skip
        git = document["git"]
        if git is not None:
            repository = Path(git["repository"])
            objects = objects_of(repository, home / _OBJECTS)
            git = GitSource(**{**git, "repository": repository, "objects": objects})
        options, omitted = tuple(document["options"].items()), tuple(document["omitted"])
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None
    return OwnKernel(name, document["base"], patches, options, git, omitted)


def recipe_for(own: OwnKernel, source: Source, fragment: Path) -> KernelRecipe:
    """Return what ``own`` is compiled from."""
    return KernelRecipe(own.name, source, own.all_patches, fragment)


def name_problems(name: str) -> list[str]:
    """Return what is wrong with the name of a kernel."""
    if _NAME.fullmatch(name) and name not in _RESERVED:
        return []
    return [
        f"{name!r} cannot be a kernel's name: it begins with a small letter and has small letters, "
        f"digits, dots, dashes and underscores, 40 at most, and is none of {sorted(_RESERVED)}"
    ]


def render_definition(own: OwnKernel) -> dict[str, str]:
    """Return the files of a definition, text by name."""
    git = own.git and {"repository": str(own.git.repository), "revision": own.git.revision,
                       "commit": own.git.commit, "tree": own.git.tree,
                       "version": own.git.version}  # fmt: skip
    document = {
        "schema": _SCHEMA,
        "base": own.base,
        "patches": [
            {"file": patch.name, "subject": patch.subject}
            | ({"fuzz": patch.fuzz} if patch.fuzz else {})
            | ({"reverse": True} if patch.reverse else {})
            for patch in own.patches
        ],
        "options": dict(own.options),
        "git": git,
        "omitted": list(own.omitted),
    }
    return {DEFINITION_FILE: json.dumps(document, indent=2) + "\n",
            **{f"{PATCHES_FOLDER}/{patch.name}": patch.text for patch in own.patches}}  # fmt: skip


def write_own(own: OwnKernel, home: Path, *, replaced: bool) -> Path:
    """Write the definition of ``own`` to the data folder ``home``, and return its folder.

    Raises:
        ConfigurationError: one of that name is there, and is not to be replaced.
        StorageError: it cannot be written.
    """
    folder = home / "kernels" / own.name
    try:
        with new_folder(folder, replace=replaced) as scratch:
            (scratch / PATCHES_FOLDER).mkdir()
            for name, text in render_definition(own).items():
                (scratch / name).write_text(text, "utf-8")
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


def forget_own(name: str, home: Path) -> None:
    """Remove a kernel's definition; what was built of it stays in the cache."""
    shutil.rmtree(home / "kernels" / name, ignore_errors=True)
