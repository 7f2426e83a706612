"""A folder that every user can reach.

pytest's own folders are closed to all but the user who runs the tests, and whenever any pytest
starts, as it does in tests of the tests, it closes them again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make it, with mode 0755, and remove it in the end."""
    folder = Path(mkdtemp(prefix="firstflight-test-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)
