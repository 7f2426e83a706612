"""Bundles whose ``guest.py`` is whatever a test wants to run inside a guest."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from testbed.base.sources import PACKAGE, imported_sources
from testbed.kernel.build.native import compile_program
from testbed.kernel.run.interface import RawResult
from testbed.kernel.run.jail import JAIL
from testbed.kernel.run.virtual import AWAIT_TRIAL, VirtualKernel
from testbed.model import Condition, Trial
from testbed.setup.bundle import FONTS_CONF, PROGRAMS
from tests.kernel.toolchains import find_toolchain

PRELUDE = f"""\
{AWAIT_TRIAL}
import json, sys
sys.path.insert(0, "/ff/bundle")
from pathlib import Path

def leave(**observation):
    Path("/ff/out/observation.json").write_text(json.dumps({{"virtual_s": 1.5, **observation}}))

"""


def compile_init(folder: Path) -> Path:
    """The guest's process 1, compiled from its source."""
    return compile_program(PACKAGE / "native" / "init.c", folder, find_toolchain())


@dataclass(frozen=True)
class Guests:
    """Runs programs in guests of one kernel, each in folders of its own below ``folder``.

    A program may import ``modules`` beyond those that guests have, and ``files`` by their names.
    """

    binary: Path
    init: Path
    boot_options: tuple[str, ...]
    folder: Path
    usr: Path
    modules: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = ()  # more of testbed/native, compiled

    def bundle(self, program: str) -> Path:
        """A bundle that runs ``program``, after ``PRELUDE``."""
        made = self.folder / "bundle"
        for source in imported_sources(*PROGRAMS, *self.modules):
            target = made / source.relative_to(PACKAGE.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        for file in self.files:
            shutil.copyfile(file, made / file.name)
        (made / "native" / "mnt").mkdir(parents=True)
        for compiled in (self.init, *self.programs):
            shutil.copy(compiled, made / "native" / compiled.name)
        (made / "etc" / "fonts").mkdir(parents=True)
        (made / "etc" / "fonts" / "fonts.conf").write_text(FONTS_CONF)
        (made / "guest.py").write_text(PRELUDE + dedent(program))
        return made

    def kernel(self, program: str, *, confinement: str = JAIL) -> VirtualKernel:
        """A kernel whose guests run ``program``."""
        bundle = self.bundle(program)
        boot = self.boot_options
        return VirtualKernel("7.3", self.binary, {}, boot, bundle, self.usr, confinement)

    def run(
        self, program: str, *, seed: int = 0, timeout_s: float = 60.0, confinement: str = JAIL
    ) -> tuple[RawResult, Path]:
        """Boot a guest that runs ``program``; how it ended, and its folder."""
        page, out = self.folder / "page", self.folder / "out"
        page.mkdir()
        out.mkdir()
        trial = Trial(Condition("p", "c"), 0, seed, "virtual", "7.3", timeout_s)
        kernel = self.kernel(program, confinement=confinement)
        return kernel.run(trial, page, out, 0, threading.Event()), out

    def observe(self, program: str, **asked: Any) -> dict[str, Any]:
        """What ``program`` leaves in a guest."""
        raw, _ = self.run(program, **asked)
        assert raw.observation is not None, raw
        found: dict[str, Any] = json.loads(raw.observation.read_text())
        return found
