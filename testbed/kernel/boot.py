"""One boot of a built kernel: a guest that says that it is there, and powers off."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from testbed.base.scratch import scratch_folder
from testbed.kernel.virtual import VirtualKernel
from testbed.model import OBSERVATION_FILE, Condition, Trial

BOOT_S = 60.0
GUEST = f"""\
with open("/ff/out/{OBSERVATION_FILE}", "w") as file:
    file.write('{{"virtual_s": 0}}')
"""


def boot_problem(
    version: str, binary: Path, boot_options: tuple[str, ...], init: Path, *, jailed: bool
) -> str | None:
    """Why the kernel ``binary`` does not boot, with its console's end; ``None``: it does.

    ``init`` is the guest's process 1, ``jailed`` as in ``VirtualKernel``.

    Raises:
        MissingError: there is no jail, or no id, for the guest.
    """
    with scratch_folder("boot") as scratch:
        for part in ("bundle/native/mnt", "bundle/etc/fonts", "page", "out"):
            (scratch / part).mkdir(parents=True)
        shutil.copy(init, scratch / "bundle" / "native" / "init")
        (scratch / "bundle" / "guest.py").write_text(GUEST)
        for path in (scratch, *scratch.rglob("*")):
            path.chmod(0o755)  # a guest that root starts is another user
        kernel = VirtualKernel(version, binary, {}, boot_options, scratch / "bundle", jailed)
        trial = Trial(Condition("none", "none"), 0, 0, "virtual", version, BOOT_S)
        never = threading.Event()
        raw = kernel.run(trial, scratch / "page", scratch / "out", 0, never)
    if raw.status == "ended":
        return None
    return f"does not boot: {raw.message}; its console ends with {raw.console_tail!r}"
