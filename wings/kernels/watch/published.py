"""Published results: static files as netdev's CI collects them from executors of others.

``results.json`` lists the runs, the last 500 of them; a run that has not ended has no address.
Each has a JSON file (``wings.kernels.formats.netdev``) and a folder with logs and results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base.errors import StorageError
from testbed.base.whole_file import write_whole

LIST_FILE = "results.json"
MOST_RUNS = 500
_REMEDY = "make room or check its permissions; the branch is tested again"


@dataclass(frozen=True, slots=True)
class PublishedRuns:
    """A folder that a web server shows; ``address`` is where it does, without a slash behind."""

    folder: Path
    address: str
    executor: str

    def tested(self) -> set[str]:
        """Return the branches that have results.

        Raises:
            StorageError: the list is there and cannot be read.
        """
        return {entry["branch"] for entry in self._entries() if entry["url"]}

    def run_folder(self, branch: str) -> Path:
        """Return the folder of a branch's logs and results."""
        return self.folder / "runs" / branch.replace("/", "_")

    def begin(self, branch: str) -> None:
        """List a branch as being tested."""
        self._list(branch, None)

    def end(self, branch: str, run: Mapping[str, Any]) -> None:
        """Publish the results of a branch, then list them.

        Raises:
            StorageError: they cannot be written; the list is as before.
        """
        name = f"results-{self.run_folder(branch).name}.json"
        text = json.dumps({"executor": self.executor, "branch": branch, **run}, indent=1) + "\n"
        write_whole(self.folder / name, text, _REMEDY)
        self._list(branch, f"{self.address}/{name}")

    def link(self, path: Path) -> str:
        """Return the address of a file in the folder."""
        return f"{self.address}/{path.relative_to(self.folder)}"

    def _list(self, branch: str, url: str | None) -> None:
        entry = {"url": url, "branch": branch, "executor": self.executor}
        entries = [other for other in self._entries() if other["branch"] != branch]
        text = json.dumps([*entries, entry][-MOST_RUNS:], indent=1) + "\n"
        write_whole(self.folder / LIST_FILE, text, _REMEDY)

    def _entries(self) -> list[dict[str, Any]]:
        file = self.folder / LIST_FILE
        try:
            entries = json.loads(file.read_text())
            if all({"branch", "url"} <= entry.keys() for entry in entries):
                return list(entries)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, AttributeError, TypeError):
            pass
        raise StorageError(f"{file} cannot be read as a list of runs; repair it, or move it away")
