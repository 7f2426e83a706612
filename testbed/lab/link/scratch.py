"""A namespace to try things out in, and modules that the kernel would load for that."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from testbed.base.namespace import Namespace, new_namespace

LOADED = Path("/proc/modules")
LOADABLE = Path("/lib/modules") / os.uname().release / "modules.dep"


def scratch_namespace() -> AbstractContextManager[Namespace]:
    """A new namespace; its name holds the process id, and its undo removes it."""
    return new_namespace(f"ffprobe{os.getpid()}")


def find_unloaded(
    names: tuple[str, ...], loaded: Path = LOADED, loadable: Path = LOADABLE
) -> str | None:
    """Why using these modules would change the host: one would have to be loaded; None: none.

    To ask the kernel for something makes it load the module that has it, which would stay.
    """
    here = {line.partition(" ")[0] for line in _lines(loaded)}
    paths = (Path(line.partition(":")[0]) for line in _lines(loadable))
    known = {path.name.partition(".")[0].replace("-", "_") for path in paths}
    missing = [name for name in names if name in known and name not in here]
    if not missing:
        return None
    return (
        f"kernel module {' and '.join(missing)} is not loaded, and the lab changes nothing of "
        f"the host; `modprobe -a {' '.join(missing)}` does it"
    )


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.is_file() else []
