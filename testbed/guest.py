"""Entry point of a guest: it performs the trial in /ff/out with the bundle that this file is in."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Perform the trial; paths are those that ``native/init.c`` laid out."""
    bundle = Path("/ff/bundle")
    sys.path.insert(0, str(bundle))
    from testbed.base import generated

    generated.use(bundle)
    from testbed.kinds.site import Site
    from testbed.trial import main as perform

    scratch = Path("/tmp/trial")  # noqa: S108  a guest's /tmp is its own tmpfs
    scratch.mkdir()
    perform(Site(Path("/ff/page"), Path("/ff/out"), bundle, scratch))


if __name__ == "__main__":
    main()
