"""A small copy of the project and fake system programs, so that bootstrap runs without a network.

The copy has the real scripts but one: making a Python environment is replaced by a link to the
system's Python; and fake programs come even before the system's.  Empty lock files, a driver
without packages, two C files, a copied program for a kernel and a program that prints what it was
given stand for what is slow.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

from testbed.base import proc

ROOT = Path(__file__).parent.parent
PROGRAM = "int main(void)\n{\n\treturn 0;\n}\n"
LIBRARY = "int answer(void);\nint answer(void)\n{\n\treturn 42;\n}\n"
ANSWERING = (
    "docs/command-line.md",
    "firstflight/completion.py",
    "firstflight/usage.py",
    "pyproject.toml",
    "testbed/__init__.py",
    "testbed/base/__init__.py",
    "testbed/base/errors.py",
    "testbed/base/places.py",
    "testbed/base/suggest.py",
)
"""What it takes to answer help, version and typing errors."""
DECLARING = (
    "testbed/setup/programs.py",
    "testbed/setup/recording.py",
    "testbed/client/chromium/__init__.py",
    "testbed/client/wget2.py",
)
"""Where the programs of trials and recordings are declared."""
VENV = """\
#!/bin/sh
mkdir "$2/bin" && ln -s /usr/bin/python3 "$2/bin/python" && echo made >"$2/pyvenv.cfg"
"""
KERNEL = """\
import os, shutil, signal, sys, time
from pathlib import Path

home = Path(__file__).resolve().parents[4]
kernel, source = home / "built" / "linux", Path("/usr/bin/true")
whole = kernel.is_file() and kernel.read_bytes() == source.read_bytes()
if "--find" in sys.argv:
    if not whole:
        sys.exit(3)
elif not whole:
    (home / "new.pid").write_text(str(os.getpid()))
    (home / "new.pid").rename(home / "kernel.pid")
    while (home / "slow").exists():
        time.sleep(0.01)
    if (home / "wrong").exists():
        sys.exit("kernel 7.3: no source")
    kernel.parent.mkdir(exist_ok=True)
    shutil.copy(source, kernel)
print(kernel)
"""
"""As ``testbed.kernel.build.cache``: waits while there is a ``slow``, fails for a ``wrong``."""
PROGRAM_ITSELF = """\
import os, sys
print(os.getcwd(), *sys.argv[1:], sep="|")
sys.exit(7)
"""


@dataclass(slots=True)
class SmallMachine:
    """Where the copy is, and the environment that its commands run in."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        """The project's copy."""
        return self.home / "tree"

    @property
    def cache(self) -> Path:
        """The cache folder of its bootstrap."""
        return self.home / "cache" / "firstflight"

    def fake(self, name: str, script: str) -> None:
        """Put a shell script before the system's program of that name."""
        path = self.home / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def install(self, *absent: str) -> None:
        """All packages are installed but those named."""
        self.fake(
            "dpkg-query",
            f'for p in "$@"; do case " {" ".join(absent)} " in *" $p "*) ;; '
            '*) echo "$p installed 99" ;; esac; done',
        )

    def run(
        self, *argv: str, cwd: Path | None = None, timeout_s: float = 120
    ) -> CompletedProcess[str]:
        """Run a command to its end, whatever its status."""
        return proc.run(
            argv, cwd=cwd or self.home, env=self.environment, check=False, timeout_s=timeout_s
        )

    def shell(self, script: str) -> CompletedProcess[str]:
        """Run a script that has bootstrap's functions."""
        prelude = f"set -euo pipefail; source {self.tree}/bootstrap/main.sh; "
        return self.run("bash", "-c", prelude + script)


def make_small_machine(home: Path) -> SmallMachine:
    """Build the copy and the fakes in ``home``."""
    machine = SmallMachine(home)
    machine.environment = {
        "PATH": f"{home / 'bin'}:{os.defpath}",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PIP_NO_INDEX": "1",
    }
    (home / "bin").mkdir()
    tree = machine.tree
    shutil.copytree(ROOT / "bootstrap", tree / "bootstrap")
    shutil.copy(ROOT / "run.sh", tree)
    main = tree / "bootstrap" / "main.sh"
    first = "export PATH="
    assert main.read_text().count(first) == 1
    main.write_text(main.read_text().replace(first, f"{first}{home / 'bin'}:"))
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tree / "bootstrap" / name).write_text("# nothing\n")
    (tree / "bootstrap" / "build-venv.sh").write_text(VENV)
    driver = tree / "testbed" / "client" / "chromium"
    driver.mkdir(parents=True)
    (driver / "driver.mjs").write_text("export {};\n")
    package = {"name": "driver", "version": "1.0.0", "scripts": {"build": "mkdir dist"}}
    (driver / "package.json").write_text(json.dumps(package))
    lock = {"name": "driver", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": package}}
    (driver / "package-lock.json").write_text(json.dumps(lock))
    native = tree / "testbed" / "native"
    native.mkdir()
    (native / "init.c").write_text(PROGRAM)
    (native / "tfo.c").write_text(LIBRARY)
    kernel = tree / "testbed" / "kernel" / "build"
    kernel.mkdir(parents=True)
    (kernel / "cache.py").write_text(KERNEL)
    for name in ANSWERING + DECLARING:
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / "firstflight" / "__main__.py").write_text(PROGRAM_ITSELF)
    machine.install()
    return machine
