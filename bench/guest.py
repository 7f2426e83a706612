"""Entry point of a guest whose trial stops after a given stage, to measure what each costs.

``cost`` puts this in a bundle in the place of the real ``guest.py``, with the stage's name beside
it.  Each stage does all of the one before.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

BUNDLE = Path("/ff/bundle")
OUT = Path("/ff/out")
SCRATCH = Path("/tmp/trial")  # noqa: S108  a guest's /tmp is its own tmpfs


def main(stage: str) -> None:
    """Go as far as ``stage`` and leave an observation, which says that the guest came to an end."""
    sys.path.insert(0, str(BUNDLE))
    from testbed.guest import await_trial

    await_trial()
    if stage != "boot":
        _go_on(stage)
    (OUT / "observation.json").write_text(json.dumps({"virtual_s": 0.0}))


def _go_on(stage: str) -> None:
    from testbed import trial
    from testbed.archive.reading import read_archive
    from testbed.client.interface import LoadOrder
    from testbed.kinds.page_load import performance
    from testbed.kinds.site import Site
    from testbed.lab.laboratory import open_lab
    from testbed.model import TRIAL_FILE, PageLoad, Trial

    class Stopping:
        """A client that goes no further than its own modules."""

        name = "stopping"

        def load(self, order: LoadOrder) -> PageLoad:
            if stage == "driver":
                import_module("testbed.client.chromium")
            return PageLoad(self.name, "", 0.0, ())

    asked = Trial.from_dict(json.loads((OUT / TRIAL_FILE).read_text()))
    if stage == "imports":
        return
    if stage == "lab":
        with open_lab(asked.linked, len(read_archive(BUNDLE.parent / "page").hosts)):
            return
    # The registry that the trial looks its client up in.
    vars(performance)["CLIENTS"] = {asked.page_load.client: Stopping()}
    SCRATCH.mkdir()
    trial.perform(asked, Site(BUNDLE.parent / "page", OUT, BUNDLE, SCRATCH))


if __name__ == "__main__":
    main((BUNDLE / "stage").read_text())
