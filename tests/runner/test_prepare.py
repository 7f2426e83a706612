"""Which of our own code an environment id depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base import proc, sources
from testbed.base.places import ROOT
from testbed.base.sources import digest_sources, imported_sources
from testbed.runner.prepare import judging_modules
from tests.copies import copy_code


def judging_code() -> set[str]:
    files = imported_sources(*judging_modules(), at_once=True)
    return {str(file.relative_to(sources.PACKAGE.parent)) for file in files}


def test_judging_is_the_code_that_python_loads_for_it() -> None:
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import testbed.runner.judge\n"
        "from testbed.kinds import KINDS\n"
        "for kind in KINDS.values(): __import__(kind.judgement)\n"
        "ours = [name for name in sys.modules if name.split('.')[0] in ('testbed', 'wings')]\n"
        "files = (sys.modules[name].__file__ for name in ours)\n"
        "print(*files, sep='\\n')\n"
    )
    printed = proc.run(("python", "-P", "-c", program)).stdout.splitlines()
    loaded = {str(Path(file).relative_to(ROOT)) for file in printed}
    # All wings are asked for what they provide.
    inits = (*ROOT.glob("wings/__init__.py"), *ROOT.glob("wings/*/__init__.py"))
    asked = {str(file.relative_to(ROOT)) for file in inits}
    assert asked <= loaded and loaded - asked == judging_code() - asked


def test_no_module_that_judges_imports_another_in_a_function() -> None:
    """Such a module would decide outcomes, and not count."""
    rooms = ("testbed/kinds", "testbed/model", "testbed/runner/judge", "wings")
    here = [name for name in judging_code() if name.startswith(rooms)]
    lazy = [
        f"{name}: {line.strip()}"
        for name in here
        for line in (ROOT / name).read_text().splitlines()
        if line.startswith(" ") and line.strip().startswith(("from testbed", "import testbed"))
    ]
    assert lazy == []


@pytest.mark.parametrize(
    ("module", "counts"),
    [("proof/line.py", True), ("kinds/page_load/judgement.py", True), ("runner/judge.py", True),
     ("kinds/command/prompt.py", False), ("kinds/page_load/performance.py", False),
     ("runner/launch.py", False)],
)  # fmt: skip
def test_a_change_of_code_changes_what_judges_or_not(
    module: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest() -> str:
        return digest_sources(imported_sources(*judging_modules(), at_once=True))

    before = digest()
    code = copy_code(tmp_path, monkeypatch)
    assert digest() == before
    with (code / module).open("a") as file:
        file.write("# a comment\n")
    assert (digest() != before) is counts
