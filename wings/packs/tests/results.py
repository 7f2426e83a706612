"""Results to be packed: a committed baseline, and the same as two lanes."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.base import places
from wings.packs.contents import METADATA_FILE

BASELINE = places.ROOT / "analysis" / "baselines" / "nightly"
PAGES = ("tum-website", "wikipedia")


def copy_results(folder: Path) -> Path:
    """A copy of the baseline, with a capture in it."""
    shutil.copytree(BASELINE, folder)
    (folder / "trials" / "0f").mkdir(parents=True)
    (folder / "trials" / "0f" / "load.pcap").write_bytes(bytes(range(256)))
    return folder


def copy_lanes(folder: Path) -> Path:
    """Two copies, as a run on two kernels leaves them."""
    folder.mkdir()
    for name in ("6.1", "7.3"):
        copy_results(folder / name)
    (folder / "lanes.json").write_text(json.dumps({"schema": 1, "lanes": ["6.1", "7.3"]}))
    return folder


def copy_pages(folder: Path) -> Path:
    """Copies of the pages that the baseline loads."""
    for name in PAGES:
        shutil.copytree(places.PAGES / name, folder / name)
    return folder


def rewrite(file: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Write a pack anew with what ``change`` makes of each file by its name; ``None``: without."""
    with zipfile.ZipFile(file) as old:
        members = [(info, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(file, "w") as new:
        for info, data in members:
            changed = change(info.filename, data)
            if changed is not None:
                new.writestr(info, changed)


def forge(file: Path, name: str, data: bytes) -> None:
    """Put other bytes into a pack, with the size and the digest that are right for them."""

    def change(entity: dict[str, Any]) -> None:
        if entity["@id"] == name:
            entity["contentSize"] = str(len(data))
            entity["sha256"] = hashlib.sha256(data).hexdigest()

    rewrite_metadata(file, change)
    rewrite(file, lambda each, old: data if each == name else old)


def rewrite_metadata(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change each entity of the metadata."""

    def each(name: str, data: bytes) -> bytes:
        if name != METADATA_FILE:
            return data
        document = json.loads(data)
        for entity in document["@graph"]:
            change(entity)
        return json.dumps(document).encode()

    rewrite(file, each)
