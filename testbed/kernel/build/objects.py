"""Object tree: a kernel's source and what was compiled of it, kept to compile a change fast.

There is one for each base, with spare ones (``trees``).  Before each build the tree is made to hold
exactly the source that is asked for, and only files that differ are written, so that they are newer
than all that was compiled of them; what make does then is what it does for anybody who edits a
kernel.  A tree whose last build did not come to its own end is not trusted: it is made anew.

Standard library only: a kernel is built before there is a Python environment.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from testbed.base.errors import MissingError
from testbed.base.scratch import scratch_folder
from testbed.base.units import format_duration
from testbed.kernel.build.compiler import CORE_S, RECIPE, BuildError, compile_tree, configure
from testbed.kernel.build.patches import Patch, apply_patch
from testbed.kernel.build.toolchain import Progress, Toolchain
from testbed.kernel.build.trees import STATE_FILE, UNPACKED_FILE, open_tree

_SOURCE = "source"
_ORIGINALS = "originals"


class Source(Protocol):
    """Where the files of a kernel are from, before any patch."""

    @property
    def id(self) -> str:
        """What names the content: a tarball's SHA-256, or a git tree's object id."""
        ...

    def describe(self) -> str:
        """Return what it is, for a message."""
        ...

    def unpack(self, tree: Path) -> None:
        """Write all files into the empty folder ``tree``."""
        ...

    def changed_since(self, before: str) -> frozenset[str] | None:
        """Return the files that differ from the source named ``before``; None: all may."""
        ...

    def extract(self, names: Collection[str], folder: Path) -> None:
        """Write those of the files ``names`` that it has into ``folder``."""
        ...


@dataclass(frozen=True, slots=True)
class KernelRecipe:
    """All that a kernel is compiled from, but the compiler: source, patches, configuration.

    ``name`` is for messages alone.
    """

    name: str
    source: Source
    patches: tuple[Patch, ...]
    fragment: Path


@dataclass(frozen=True, slots=True)
class _State:
    """What a tree holds: a source, with files that patches have changed, compiled by a compiler.

    ``at_rest`` is false from before a tree is changed until its build has ended.
    """

    source: str
    overlaid: tuple[str, ...]
    compiler: str
    recipe: str
    at_rest: bool


def build_in(
    folder: Path, recipe: KernelRecipe, *, toolchain: Toolchain, binary: Path, log: Path, jobs: int,
    progress: Progress, look: Callable[[Path], None] = lambda tree: None,
) -> None:  # fmt: skip
    """Compile ``recipe`` in the object tree ``folder``, which is made if need be, or a spare one.

    The stripped kernel is written to ``binary``, and what the compiler says to ``log``.  ``look``
    is shown the tree with all that was compiled, before another build changes it.

    Raises:
        PatchError: a patch does not apply; the tree is as it was.
        MissingError: options that were asked for did not survive the configuration.
        BuildError: it does not compile.
        CommandError: another step failed.
    """
    with open_tree(folder, is_kept, recipe.name, progress) as tree:
        _build_in(tree, recipe, toolchain, binary, log, jobs, progress)
        look(tree / _SOURCE)


def _build_in(
    folder: Path, recipe: KernelRecipe, toolchain: Toolchain, binary: Path, log: Path, jobs: int,
    progress: Progress,
) -> None:  # fmt: skip
    """Compile ``recipe`` in the tree ``folder``, which nobody else uses meanwhile."""
    for stale in folder.glob(".next-*"):
        shutil.rmtree(stale, ignore_errors=True)  # left by a run that was killed
    state, span = _read_state(folder), "what differs from the last build"
    if state is None or (state.compiler, state.recipe) != (toolchain.name, RECIPE):
        state = _begin(folder, recipe, toolchain.name, progress)
        cores = min(jobs, os.cpu_count() or 1)
        span = f"usually {format_duration(CORE_S / cores)} in all"
    held = _hold(folder, state, recipe, toolchain, progress)
    try:
        configure(folder / _SOURCE, recipe.fragment, f"kernel {recipe.name}", toolchain)
        progress(f"kernel {recipe.name}: compiling, {span} on {jobs} cores; log: {log}")
        compile_tree(folder / _SOURCE, binary, log, jobs, recipe.name, toolchain)
    except (BuildError, MissingError):
        _write_state(folder, held)
        raise
    _write_state(folder, held)


def is_kept(folder: Path) -> bool:
    """Return whether there is an object tree in ``folder`` that the next build goes on from."""
    return _read_state(folder) is not None


def check_patches(recipe: KernelRecipe, toolchain: Toolchain) -> None:
    """Apply the patches to the files that they touch, as a build would, and keep nothing.

    Raises:
        PatchError: one does not apply.
    """
    with scratch_folder("kernel") as over:
        write_patched(recipe, (), over, toolchain)


def write_patched(
    recipe: KernelRecipe, names: Collection[str], folder: Path, toolchain: Toolchain
) -> None:
    """Write the files ``names``, and those that the patches touch, into the empty ``folder``.

    Raises:
        PatchError: a patch does not apply.
    """
    recipe.source.extract(_touched(recipe.patches) | set(names), folder)
    _apply(recipe, folder, toolchain)


def _begin(folder: Path, recipe: KernelRecipe, compiler: str, progress: Progress) -> _State:
    """Unpack the source into a new tree, whatever was there."""
    for name in (STATE_FILE, UNPACKED_FILE, _SOURCE, _ORIGINALS):
        _remove(folder / name)
    progress(f"kernel {recipe.name}: unpacking {recipe.source.describe()}")
    (folder / _SOURCE).mkdir()
    (folder / _ORIGINALS).mkdir()
    recipe.source.unpack(folder / _SOURCE)
    (folder / UNPACKED_FILE).touch()
    state = _State(recipe.source.id, (), compiler, RECIPE, at_rest=True)
    _write_state(folder, state)
    return state


def _hold(
    folder: Path, state: _State, recipe: KernelRecipe, toolchain: Toolchain, progress: Progress
) -> _State:
    """Make the tree hold the source of ``recipe`` with its patches, and nothing else.

    Return what it holds once its build has ended; until that is written it is not at rest.
    """
    source = recipe.source
    changed = frozenset() if source.id == state.source else source.changed_since(state.source)
    if changed is None:
        progress(f"kernel {recipe.name}: nothing tells this source from the last one")
        state, changed = _begin(folder, recipe, state.compiler, progress), frozenset()
    touched = _touched(recipe.patches)
    with TemporaryDirectory(prefix=".next-", dir=folder) as scratch:
        fresh, originals, over = (Path(scratch) / name for name in ("fresh", _ORIGINALS, "over"))
        for part in (fresh, originals, over):
            part.mkdir()
        if changed:
            recipe.source.extract(changed, fresh)
        for name in touched | set(state.overlaid):
            original = _original(folder, state, name, fresh if name in changed else None)
            if original is not None:
                _copy(original, originals / name)
                if name in touched:
                    _copy(original, over / name)
        _apply(recipe, over, toolchain)
        _write_state(folder, replace(state, at_rest=False))
        for name in sorted(changed - touched):
            _put(fresh / name, folder / _SOURCE / name)
        for name in sorted(set(state.overlaid) - touched):
            _put(originals / name, folder / _SOURCE / name)
            _remove(originals / name)
        for name in sorted(touched):
            _put(over / name, folder / _SOURCE / name)
        _remove(folder / _ORIGINALS)
        originals.rename(folder / _ORIGINALS)
    return replace(state, source=recipe.source.id, overlaid=tuple(sorted(touched)))


def _touched(patches: Iterable[Patch]) -> frozenset[str]:
    return frozenset(name for patch in patches for name in patch.touched)


def _apply(recipe: KernelRecipe, over: Path, toolchain: Toolchain) -> None:
    for patch in recipe.patches:
        apply_patch(patch, over, recipe.source.describe(), toolchain)


def _original(folder: Path, state: _State, name: str, fresh: Path | None) -> Path | None:
    """Return where a file of the source is as it was before any patch; ``None``: it has none."""
    if fresh is not None:
        file = fresh / name
    elif name in state.overlaid:
        file = folder / _ORIGINALS / name
    else:
        file = folder / _SOURCE / name
    return file if file.is_file() else None


def _put(new: Path, place: Path) -> None:
    """Make ``place`` what ``new`` is, a file or nothing, and leave it untouched if it is that."""
    if not os.path.lexists(new):
        _remove(place)
    elif not _is_same(new, place):
        _remove(place)
        _copy(new, place)


def _is_same(new: Path, old: Path) -> bool:
    if new.is_symlink() or old.is_symlink():
        return new.is_symlink() and old.is_symlink() and new.readlink() == old.readlink()
    if not old.is_file():
        return False
    modes = [path.stat().st_mode & 0o111 for path in (new, old)]
    return modes[0] == modes[1] and new.read_bytes() == old.read_bytes()


def _copy(new: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(new, place, follow_symlinks=False)  # the time of change is that of the copy


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_state(folder: Path, state: _State) -> None:
    (folder / STATE_FILE).write_text(json.dumps(asdict(state)) + "\n")


def _read_state(folder: Path) -> _State | None:
    """Return what the tree in ``folder`` holds; ``None``: there is none to go on from."""
    try:
        state = _State(**json.loads((folder / STATE_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return state if state.at_rest else None
