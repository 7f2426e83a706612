"""Imports in one call, checked down to the archive on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wings.pages.exchange import Recording
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.verify import verify_archive

Import = Callable[..., Recording]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """A function that imports a HAR and checks the written archive, if it is one."""

    def run(document: Any, **options: str) -> Recording:
        file = tmp_path / "load.har"
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        file.write_bytes(data)
        recording = read_recording(file, **options)
        assert isinstance(recording, Recording)
        how = WriteOptions(keep_secrets=True, replace=True)
        written = write_page(tmp_path / "page", recording, how)
        if written.kind == "archive":
            assert verify_archive(tmp_path / "page") == []
        return recording

    return run
