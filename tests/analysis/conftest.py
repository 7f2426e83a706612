"""Results folders for the tests of the analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.sample import write_sample


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table 1 with five seeds; three trials went wrong and one did not run."""
    return write_sample(tmp_path_factory.mktemp("sample"), seeds=5)
