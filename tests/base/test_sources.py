"""Which source files a module runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.sources import PACKAGE, digest_sources, imported_sources
from testbed.setup.bundle import PROGRAMS

# That one runs by a component's Python, which alone has aioquic.
HERE = tuple(name for name in PROGRAMS if name != "testbed.server.quic_program")


def _names(*modules: str) -> set[str]:
    return {str(file.relative_to(PACKAGE)) for file in imported_sources(*modules)}


def test_packages_and_what_is_imported_in_turn_count() -> None:
    found = _names("testbed.archive.reading")
    assert {"__init__.py", "archive/__init__.py", "archive/reading.py", "base/errors.py"} <= found
    assert "archive/head.py" not in found


def test_imports_in_functions_and_registries_count_but_not_those_for_types() -> None:
    found = _names("testbed.client")
    assert {"client/graph.py", "client/chromium/__init__.py"} <= found
    assert not {name for name in found if name.startswith("kernel/")}


def test_all_that_python_loads_is_found(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        f"for name in {HERE!r}: __import__(name)\n"
        "from testbed.client import CLIENTS\n"
        "[CLIENTS[name] for name in CLIENTS]\n"
        "files = (m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'testbed')\n"
        "print(*files, sep='\\n')\n"
    )
    # The Python of guests and enclosures, which has mininet.
    loaded = proc.run(("/usr/bin/python3", "-I", "-c", program), timeout_s=60).stdout.splitlines()
    assert loaded
    assert set(map(Path, loaded)) <= set(imported_sources(*PROGRAMS))


def test_no_such_module() -> None:
    with pytest.raises(ValueError, match=r"testbed\.absent"):
        imported_sources("testbed.absent")


def test_every_byte_decides_the_digest(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("a = 1\n")
    first = digest_sources([file])
    file.write_text("a = 2\n")
    assert digest_sources([file]) != first
