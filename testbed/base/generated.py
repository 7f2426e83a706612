"""Methods that ``dataclasses`` generates, compiled once for a bundle and not again in each guest.

``dataclasses`` writes the methods of a class as text and compiles it, six pieces a class, whenever
its module is imported.  What a text compiles to depends on nothing else, so a guest that has the
code of each text need not compile any: it imports the same classes with the same methods.

Source: Python's Lib/dataclasses.py, which calls ``exec`` for each piece.
"""

from __future__ import annotations

import dataclasses
import marshal
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

FILE = "generated.marshal"
_execute = exec


def record(folder: Path, modules: Iterable[str]) -> None:
    """Import ``modules`` and write the code of all generated methods into ``folder``.

    Only what is imported from now on is seen, so this wants a process of its own.
    """
    codes: dict[str, CodeType] = {}

    def compiling(text: str, names: dict[str, Any], found: Mapping[str, object]) -> None:
        codes[text] = compile(text, "<dataclass>", "exec", dont_inherit=True)
        _execute(codes[text], names, found)

    vars(dataclasses)["exec"] = compiling
    for module in modules:
        import_module(module)
    # Code is loaded by the piece, when it is asked for: a trial imports some of the modules.
    pieces = {text: marshal.dumps(code) for text, code in codes.items()}
    (folder / FILE).write_bytes(marshal.dumps((sys.version, pieces)))


def use(folder: Path) -> None:
    """From now on take the code of generated methods from ``folder``, if this Python wrote it."""
    version, pieces = marshal.loads((folder / FILE).read_bytes())  # noqa: S302 - the bundle is ours
    if version != sys.version:
        return

    def loading(text: str, names: dict[str, Any], found: Mapping[str, object]) -> None:
        piece = pieces.get(text)
        _execute(text if piece is None else marshal.loads(piece), names, found)  # noqa: S302

    vars(dataclasses)["exec"] = loading


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    record(Path(sys.argv[1]), sys.argv[2:])
