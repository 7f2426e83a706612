"""Results folders as the tests of the analysis have them, and a Jupyter for notebooks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import places
from tests.analysis.conftest import sample
from tests.test_additions import tree
from wings.papers.notebooks.show import BASELINES, VARIABLE

__all__ = ["jupyter", "sample", "tree"]


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Jupyter that reads and writes nothing of the user's, and knows the tests' own Python."""
    home = tmp_path_factory.mktemp("jupyter")
    spec = home / "data" / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.joinpath("kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Python 3 (ipykernel)", "language": "python"})
    )
    names = {"JUPYTER_DATA_DIR": "data", "JUPYTER_CONFIG_DIR": "config",
             "JUPYTER_RUNTIME_DIR": "run", "IPYTHONDIR": "ipython"}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JUPYTER_PATH", raising=False)
        patch.setenv(VARIABLE, str(BASELINES))
        for name, folder in names.items():
            patch.setenv(name, str(home / folder))
        patch.setenv("PYTHONPATH", str(places.ROOT))
        yield home
