"""Entry point of a guest whose trial stops after a given stage, to measure what each costs.

``cost`` puts this in a bundle in the place of the real ``guest.py``, with the stage's name beside
it.  Each stage does all of the one before; all get ready as a page load of Chromium does.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.kinds.workspace import Site

BUNDLE = Path("/ff/bundle")
OUT = Path("/ff/out")
SCRATCH = Path("/tmp/trial")  # noqa: S108  a guest's /tmp is its own tmpfs


def main(stage: str) -> None:
    """Go as far as ``stage``, then write an observation, which says that the guest ended well."""
    sys.path.insert(0, str(BUNDLE))
    from testbed.kinds.workspace import Site
    from testbed.model import parse_opening
    from testbed.runner.guest_entry import await_trial
    from testbed.runner.trial import import_common, prepared

    import_common()
    SCRATCH.mkdir()
    there = Site(BUNDLE.parent / "page", OUT, BUNDLE, SCRATCH)
    with prepared(parse_opening(sys.argv[1]), there) as site:
        await_trial()
        if site.obstacle is not None:
            raise site.obstacle
        if stage != "image":
            _go_on(stage, site)
        (OUT / "observation.json").write_text(json.dumps({"virtual_s": 0.0}))


def _go_on(stage: str, site: Site) -> None:
    from testbed.archive.reading import read_archive
    from testbed.client.interface import LoadOrder
    from testbed.kinds import read_trial
    from testbed.kinds.page_lab import open_lab_for
    from testbed.model import TRIAL_FILE, PageLoad
    from testbed.runner import trial

    class Waiting:
        """A client that loads nothing."""

        def load(self, _order: LoadOrder) -> PageLoad:
            return PageLoad("waiting", "", 0.0, ())

    planned = read_trial(json.loads((OUT / TRIAL_FILE).read_text()))
    if stage == "lab":
        with open_lab_for(read_archive(site.page), planned, site, {}):
            return
    if site.early is None:
        raise TypeError("the client is not one that is started early")
    trial.perform(planned, replace(site, early=replace(site.early, client=Waiting())))


if __name__ == "__main__":
    main((BUNDLE / "stage").read_text())
