"""Entry point of the host kernel's enclosure: ``probe``, or ``trial TAG``.

The tree is the one that ``native/init.c`` lays out in a guest, so that the same trial finds the
same paths; what is missing of it after bubblewrap is made here (``testbed.kernel.run.enclosure``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n"
    "browser:x:1000:1000:browser:/tmp:/bin/sh\n"
    "tcpdump:x:100:101::/nonexistent:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\ntcpdump:x:101:\nbrowser:x:1000:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
    "hosts": "127.0.0.1 localhost\n",
    "hostname": "guest\n",
    "machine-id": "00000000000000000000000000000001\n",
    "services": "domain 53/udp\ndomain 53/tcp\nhttp 80/tcp\n",
    "resolv.conf": "",
}
# A full browser connects before a page asks it to, which hides handshakes: 2 is never.
POLICY = json.dumps({"NetworkPredictionOptions": 2})
MANAGEMENT = Path("/ff/management.bpf.o")
POLICIES = ("chromium/policies/managed", "opt/chrome/policies/managed")


def main() -> None:
    """Do what the arguments say; the answer to ``probe`` is JSON on standard output."""
    sys.path.insert(0, "/ff/bundle")
    make_etc(Path("/etc"))
    if sys.argv[1] == "probe":
        print(json.dumps(probe()))
        return
    from testbed.kinds.workspace import Site
    from testbed.runner.trial import main as perform

    scratch = Path("/tmp/trial")  # noqa: S108  the enclosure's /tmp is its own tmpfs
    scratch.mkdir()
    site = Site(
        page=Path("/ff/page"),
        out=Path("/ff/out"),
        bundle=Path("/ff/bundle"),
        scratch=scratch,
        tag=sys.argv[2],
        aligned=False,
        management=MANAGEMENT if MANAGEMENT.exists() else None,
    )
    perform(site)


def make_etc(etc: Path) -> None:
    """Write the files that programs look for; nothing of the host's users or names is in them."""
    for name, text in ETC.items():
        (etc / name).write_text(text)
    for folder in POLICIES:
        (etc / folder).mkdir(parents=True)
        (etc / folder / "firstflight.json").write_text(POLICY)


def probe() -> dict[str, str]:
    """Return what trials will run with here: ``backend`` or ``problem``, and the ``scheduler``."""
    from testbed.base.errors import MissingError
    from testbed.base.machine import real_time_priority
    from testbed.lab.link.backend import choose_backend

    with real_time_priority() as granted:
        scheduler = "fifo" if granted else "normal"
    try:
        return {"backend": choose_backend().name, "scheduler": scheduler}
    except MissingError as error:
        return {"problem": str(error), "scheduler": scheduler}


if __name__ == "__main__":
    main()
