"""Transfer of built kernels between machines: from the cache into a pack, and into another cache.

The pack is one of parts, as a root's is (``testbed.setup.root_pack``): the kernel and the C
programs.  A kernel of the user's own brings along what it is made of.  Digests protect from damage.
They say nothing about who made a pack: what is in it runs with the rights of whoever imports it
(docs/security.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.base.checksums import file_sha256
from testbed.base.debian import NEWER
from testbed.base.errors import StorageError
from testbed.base.heartbeat import Write, repeating
from testbed.base.places import using_cache
from testbed.base.units import format_bytes
from testbed.base.whole_file import refuse_existing
from testbed.kernel.build.cache import (
    BINARY_FILE,
    IDENTITY_FILE,
    KernelBuild,
    KernelIdentity,
    read_build,
    read_identity,
    read_whole,
)
from testbed.kernel.build.compiler import RECIPE
from testbed.kernel.build.native import is_whole, native_folder
from testbed.kernel.build.pin import read_pin
from testbed.kernel.build.toolchain import read_name
from testbed.setup.parts import KINDS, CachePart
from testbed.setup.root_import import is_there, list_unfit, put_parts, read_fitting, writing
from testbed.setup.root_pack import PackedPart, write_pack
from wings.kernels.own.build import build_place, config_sha256, key_of
from wings.kernels.own.definition import (
    OwnKernel,
    name_problems,
    own_kernels,
    parse_definition,
    read_own,
    render_definition,
    write_own,
)

_DEFINITION = "definition"
"""The folder, beside a kernel of the user's own, of what it is made of."""
_MOST_BYTES = 128 << 20  # one of ours holds 10 MB


@dataclass(frozen=True, slots=True)
class KernelImport:
    """What came of an import.

    Attributes:
        build: the kernel, in the cache.
        added: whether it was not there before.
        programs: the folder of the C programs; ``None``: they were not taken.
        foreign: by what the pack's C programs are not this tree's.
    """

    build: KernelBuild
    added: bool
    programs: Path | None
    foreign: tuple[str, ...]


def export_kernel(build: KernelBuild, native: Path, file: Path, progress: Write, *, replace: bool,
                  own: OwnKernel | None = None) -> str:  # fmt: skip
    """Write a kernel and the C programs in ``native`` to ``file``, and return its SHA-256.

    ``own`` is what the kernel is made of where it is the user's own.

    Raises:
        ConfigurationError: the file is there and is not to be replaced.
        StorageError: it cannot be written, or what belongs into it cannot be read.
    """
    refuse_existing(file, replace=replace)
    if not is_whole(native):
        raise StorageError(f"{native} is damaged; start again: ./run.sh builds it anew")
    folder, kind = build.binary.parent, "kernel" if own is None else "own"
    with ExitStack() as undo:
        kernel = CachePart(kind, build.identity.version, f"{KINDS[kind].kept_in}/{folder.name}")
        if own is not None:
            scratch = Path(undo.enter_context(TemporaryDirectory(prefix="firstflight-")))
            folder = shutil.copytree(folder, scratch / folder.name)
            shutil.rmtree(folder / _DEFINITION, ignore_errors=True)
            for name, text in render_definition(own).items():
                path = folder / _DEFINITION / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
        programs = CachePart("programs", "", f"{KINDS['programs'].kept_in}/{native.name}")
        return write_pack(file, {kernel: folder, programs: native}, progress, replace=replace)


def import_kernel(file: Path, cache: Path, home: Path, progress: Write) -> KernelImport:
    """Put the kernel and the C programs that are packed in ``file`` into ``cache``.

    A kernel of somebody's own becomes one of the data folder ``home``.  All of the pack is checked
    before any of it is in its place, and what is put there appears whole.

    Raises:
        ConfigurationError: it is no whole pack, its kernel is not of this tree's pins, or one of
            that name is there and is another.
        MissingError: its kernel does not run on this machine.
        StorageError: the cache or the data folder cannot be written.
    """
    pack = read_fitting(file)
    kernels = [each for each in pack.parts if each.part.kind in {"kernel", "own"}]
    if len(kernels) != 1:
        raise pack.refuse([f"holds {len(kernels) or 'no'} kernels, and not one"])
    [kernel] = kernels
    programs = next((each for each in pack.parts if each.part.kind == "programs"), None)
    foreign = () if programs is None else tuple(_list_foreign(programs, cache))
    taken = [kernel, *([programs] if programs is not None and not foreign else [])]
    if sum(each.size for each in taken) > _MOST_BYTES:
        raise pack.refuse([f"would unpack to more than {format_bytes(_MOST_BYTES)}"])
    with using_cache(cache), repeating(progress) as report, writing(file, cache, report):
        wanted = [(each, each.part.place(cache)) for each in taken]
        absent = [(each, place) for each, place in wanted if not is_there(each, place)]
        place = wanted[0][1]
        before = read_whole(place)
        notes = {path: path.read_bytes()
                 for pattern in (KINDS[kernel.part.kind].left_out if before else ())
                 for path in place.glob(pattern)}  # fmt: skip

        def check(made: Mapping[str, Path]) -> Iterator[str]:
            files = made.get(kernel.part.name, place)
            if problems := list(_list_strange(files, [*made.values()])):
                yield from problems
                return
            if kernel.part.kind == "own":
                yield from _list_unfit_own(kernel.part, files, home)
            yield from list_unfit([each for each in absent if each[0].part.kind != "own"], made)
            if before is not None:
                yield from _list_other_bits(before, files, place)

        if absent:
            put_parts(pack, absent, cache, report, check)
            for path, text in notes.items():  # what this machine has found out itself
                path.write_bytes(text)
        elif problems := list(check({})):
            raise pack.refuse(problems)
        build = _find_build(kernel.part, place, home)
    native = wanted[1][1] if len(wanted) > 1 else None
    return KernelImport(build, before is None, native, foreign)


def _find_build(part: CachePart, place: Path, home: Path) -> KernelBuild:
    """Return the kernel that is in its place now; one of somebody's own is defined, too."""
    pin = read_pin(part.variant) if part.kind == "kernel" else None
    if pin is None:
        own = _read_definition(part, place, home)
        pin = own.pin
        if own.name not in own_kernels(home):
            write_own(own, home, replaced=False)
    build = read_build(place, pin)
    assert build is not None  # noqa: S101  it was checked
    return replace_fields(build, identity=replace_fields(build.identity, version=part.variant))


def _list_foreign(programs: PackedPart, cache: Path) -> Iterator[str]:
    """Yield by what C programs are not those of this tree."""
    here = programs.part.list_sources()
    for name in sorted({*here, *programs.sources}):
        if here.get(name) != programs.sources.get(name):
            yield name.rpartition("/")[2]
    if programs.part.place(cache) != native_folder(cache):
        yield "compiler"


def _list_strange(files: Path, unpacked: Sequence[Path]) -> Iterator[str]:
    """Yield what no build of ours has in it, and a terminal or a reader might obey."""
    identity = read_whole(files)
    if any(path.is_symlink() for folder in unpacked for path in folder.rglob("*")):
        yield "holds links"
    elif identity is None:
        yield "holds no kernel, or another than the build that it names"
    else:
        fields = asdict(identity)
        words = [*fields.pop("patches").items(), fields.values()]
        if not all(isinstance(each, str) and each.isprintable() for some in words for each in some):
            yield f"its {IDENTITY_FILE} has characters that no kernel's has"


def _list_other_bits(before: KernelIdentity, files: Path, place: Path) -> Iterator[str]:
    """Yield that the cache has other bits of the same build."""
    ours, theirs = before.binary_sha256, file_sha256(files / BINARY_FILE)
    if ours != theirs:
        yield (f"its kernel {before.version} is made from the same as the one in {place} and has "
               f"other bits: SHA-256 {theirs[:12]} instead of {ours[:12]}; to use it, remove that "
               "folder first")  # fmt: skip


def _read_definition(part: CachePart, files: Path, home: Path) -> OwnKernel:
    """Return the kernel of somebody's own whose definition is beside it in ``files``.

    Raises:
        ValueError, OSError: there is none.
    """
    folder = files / _DEFINITION
    paths = [path for path in folder.rglob("*") if path.is_file()]
    texts = {str(path.relative_to(folder)): path.read_text("utf-8") for path in paths}
    return parse_definition(part.variant, texts, home)


def _list_unfit_own(part: CachePart, files: Path, home: Path) -> Iterator[str]:
    """Yield why a kernel of somebody's own cannot be one here."""
    identity, name = read_identity(files), part.variant
    try:
        own = _read_definition(part, files, home)
    except (OSError, ValueError) as error:
        yield f"what its kernel is made of cannot be read ({error})"
        return
    problems = name_problems(name)
    yield from problems
    made_of = identity and (identity.config_sha256, identity.patches, identity.compiler,
                            identity.recipe,
                            f"{KINDS['own'].kept_in}/{build_place(own, files).name}")  # fmt: skip
    if made_of != (config_sha256(own), own.patch_sha256, read_name(), RECIPE,
                   part.folder.removesuffix(NEWER)):  # fmt: skip
        yield (
            f"its kernel {name!a} is made from another {own.base} than this tree's; export it in a "
            "tree of this version"
        )
    elif not problems and name in own_kernels(home) and key_of(read_own(name, home)) != key_of(own):
        yield (f"a kernel {name!r} is there, and is another; remove it first: "
               f"./run.sh kernel remove {name}")  # fmt: skip
