"""In continuous integration a skip is a failure that keeps its reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

import pytest

from testbed.base import proc

ROOT = Path(__file__).parent.parent
SKIPPED = "import pytest\n\ndef test_a() -> None:\n    pytest.skip('no kernel here')\n"
MODULE = "import pytest\n\npytest.skip('no module here', allow_module_level=True)\n"
PATIENT_S = 900  # a busy machine may take its time
EXPECTED = "import pytest\n\n@pytest.mark.xfail\ndef test_a() -> None:\n    assert False\n"


def run_tests(folder: Path, content: str, ci: str, workers: int = 0) -> CompletedProcess[str]:
    (folder / "test_it.py").write_text(content)
    given = ("-p", "conftest", "--rootdir", str(folder), "-n", str(workers))
    argv = (sys.executable, "-m", "pytest", *given, str(folder))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CI": ci}
    return proc.run(argv, cwd=folder, env=env, check=False, timeout_s=PATIENT_S)


@pytest.mark.parametrize(
    ("content", "reason"), [(SKIPPED, "no kernel here"), (MODULE, "no module here")]
)
def test_a_skip_fails_in_ci_only(tmp_path: Path, content: str, reason: str) -> None:
    in_ci = run_tests(tmp_path, content, "true")
    assert in_ci.returncode != 0
    assert f"skipped in continuous integration: Skipped: {reason}" in in_ci.stdout
    elsewhere = run_tests(tmp_path, content, "")
    assert "1 skipped" in elsewhere.stdout
    assert "failed" not in elsewhere.stdout


@pytest.mark.parametrize("content", [SKIPPED, MODULE])
def test_so_it_does_in_a_worker(tmp_path: Path, content: str) -> None:
    in_ci = run_tests(tmp_path, content, "true", workers=1)
    assert in_ci.returncode != 0
    assert "skipped in continuous integration: Skipped: no " in in_ci.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    done = run_tests(tmp_path, EXPECTED, "true")
    assert done.returncode == 0
    assert "1 xfailed" in done.stdout
