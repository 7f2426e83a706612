"""What of a patch is in a kernel: files that were compiled or included, options that are on.

A build's object tree knows: ``vmlinux.a`` lists the objects that were linked, ``.NAME.o.cmd`` all
files that one was made of, and Makefiles and Kconfig files name the options that decide
(Documentation/kbuild/makefiles.rst, kconfig-language.rst).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from testbed.base import proc
from testbed.kernel.build.compiler import parse_config
from testbed.kernel.build.patches import Patch
from testbed.kernel.build.toolchain import Toolchain

MISSES_FILE = "misses.json"
"""What of its patches a build has not, in sentences; beside its binary."""
_LINKED = "vmlinux.a"
_CODE = frozenset({".c", ".h", ".S"})
_RULE = re.compile(r"^([\w.-]+?)-(y|objs|m|\$\(CONFIG_(\w+)\))\s*[:+]?=(.*)$", re.MULTILINE)
_NEW_OPTION = re.compile(r"^\+[ \t]*(?:menu)?config (\w+)[ \t]*$", re.MULTILINE)
_DEFAULT = re.compile(r"^\+[ \t]*(?:default|def_bool) y\b")
_MOST_DEEP = 12


def find_misses(tree: Path, patches: Sequence[Patch], toolchain: Toolchain) -> list[str]:
    """Return a sentence for each thing that ``patches`` change and the kernel in ``tree`` has not.

    ``tree`` is the source that has just been compiled.
    """
    config = parse_config((tree / ".config").read_text("utf-8"))
    touched = {name for patch in patches for name in patch.touched}
    code = {name for name in touched if _is_code(name) and (tree / name).is_file()}
    unused = sorted(code - _list_used(tree, code, toolchain)) if code else []
    misses, named = [], set()
    for name in unused:
        option = _option_of(tree, PurePosixPath(name), config)
        named.add(option)
        why = f": CONFIG_{option} is not set ({_remedy(option)})" if option else ""
        misses.append(f"{name} is not compiled{why}")
    for option, file, on in _new_options(patches):
        if config.get(f"CONFIG_{option}", "n") == "n" and option not in named:
            default = ", though its default is y" if on else ""
            misses.append(
                f"the new option CONFIG_{option} of {file} stays off{default} ({_remedy(option)})"
            )
    if code and len(unused) == len(code):
        misses.append("so no code of it is in this kernel")
    return misses


def write_misses(folder: Path, misses: Sequence[str]) -> None:
    """Keep ``misses`` beside the binary in ``folder``."""
    (folder / MISSES_FILE).write_text(json.dumps(misses) + "\n", "utf-8")


def read_misses(folder: Path) -> tuple[str, ...]:
    """Return what the build in ``folder`` has not of its patches; nothing of one that kept none."""
    try:
        return tuple(map(str, json.loads((folder / MISSES_FILE).read_text("utf-8"))))
    except FileNotFoundError:
        return ()


def _remedy(option: str) -> str:
    return f"--config CONFIG_{option}=y"


def _is_code(name: str) -> bool:
    """Return whether objects are made of a file; of a linker's script none is."""
    return PurePosixPath(name).suffix in _CODE and not name.endswith(".lds.S")


def _list_used(tree: Path, wanted: Collection[str], toolchain: Toolchain) -> set[str]:
    """Return those of the files ``wanted`` that an object of the kernel was made of."""
    ends = {f"{name}": re.compile(rf"(?<=\s){re.escape(name)}(?=\s)") for name in wanted}
    used: set[str] = set()
    for made in _list_commands(tree, toolchain):
        text = made.read_text("utf-8", "replace") + "\n"
        used |= {name for name, found in ends.items() if name not in used and found.search(text)}
        if len(used) == len(ends):
            break
    return used


def _list_commands(tree: Path, toolchain: Toolchain) -> Iterator[Path]:
    """Yield the ``.cmd`` file of each object in the kernel."""
    libraries = (tree / part / "lib.a" for part in ("lib", "arch/x86/lib", "arch/um/lib"))
    for archive in (tree / _LINKED, *libraries):
        if archive.is_file():
            argv = [toolchain.program("ar"), "t", str(archive)]
            listed = proc.run(argv, cwd=tree, env=toolchain.environment, timeout_s=60.0).stdout
            for name in listed.splitlines():
                file = tree / name if not Path(name).is_absolute() else Path(name)
                command = file.with_name(f".{file.name}.cmd")
                if command.is_file():
                    yield command


def _option_of(tree: Path, file: PurePosixPath, config: dict[str, str]) -> str | None:
    """Return the option without which ``file`` is not compiled; ``None``: none is known."""
    folder, target = file.parent, f"{file.stem}.o"
    for _ in range(_MOST_DEEP):
        for stem, _, option in _rules_for(tree / folder, target):
            if option and config.get(f"CONFIG_{option}", "n") == "n":
                return option
            if stem != "obj":
                target = f"{stem}.o"
                break
        else:
            if folder == folder.parent:
                return None
            folder, target = folder.parent, f"{folder.name}/"
    return None


def _rules_for(folder: Path, target: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield stem, kind and option of each rule of a folder's Makefile that names ``target``."""
    for name in ("Makefile", "Kbuild"):
        file = folder / name
        if file.is_file():
            text = file.read_text("utf-8", "replace").replace("\\\n", " ")
            for stem, kind, option, words in _RULE.findall(text):
                if target in words.split():
                    yield stem, kind, option or None


def _new_options(patches: Iterable[Patch]) -> Iterator[tuple[str, str, bool]]:
    """Yield each option that a patch brings, its Kconfig file, and whether its default is y."""
    for patch in patches:
        if patch.reverse:
            continue
        for part in re.split(r"^(?=--- \S+)", patch.text, flags=re.MULTILINE):
            file = re.search(r"^\+\+\+ \w+/(\S*Kconfig\S*)", part, re.MULTILINE)
            if file is None:
                continue
            for option in _NEW_OPTION.finditer(part):
                entry = _entry_after(part[option.end() :])
                yield option[1], file[1], any(map(_DEFAULT.match, entry))


def _entry_after(text: str) -> list[str]:
    """Return the added lines of a Kconfig entry, up to the next one."""
    lines = text.splitlines()
    end = next(
        (n for n, line in enumerate(lines) if re.match(r"\+\s*(?:menu)?config ", line)), None
    )
    return lines[:end]
