"""A machine with nothing but busybox: an ordinary user's nightly sweep has the same bits there.

It has no C library, no package manager, no Python and no compiler, and it gives no namespaces,
since it is entered by chroot(2).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from testbed.base import places, proc
from testbed.base.debian import debian_archives
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import read_pin
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from testbed.setup.python_packages import find_authorities

pytestmark = [
    pytest.mark.root, pytest.mark.guest, pytest.mark.slow, pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter another root"),
]  # fmt: skip

BUSYBOX = Path("/bin/busybox")
USER = 61_200
TREE = ("analysis", "bootstrap", "configs", "firstflight", "pages", "roots", "scenarios", "testbed",
        "wings")  # fmt: skip
ENTER = """\
set -e
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec chroot --userspec="$USER_ID:$USER_ID" --groups= "$root" /bin/busybox env -i "$@"
"""
"""In a mount namespace of its own, which goes with what runs in it."""


def make_machine(root: Path) -> Path:
    """Fill ``root`` with busybox, the work tree and an empty home; return the home."""
    for name in ("bin", "dev", "etc", "proc", "tmp", "home/somebody"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for applet in proc.run((str(BUSYBOX), "--list")).stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    for name in ("resolv.conf", "hosts"):
        shutil.copy(Path("/etc") / name, root / "etc")
    home = root / "home" / "somebody"
    shutil.copy(find_authorities(), home / "authorities.crt")
    unneeded = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in TREE:
        shutil.copytree(places.ROOT / name, home / "tree" / name, ignore=unneeded)
    for name in ("run.sh", "pyproject.toml"):
        shutil.copy(places.ROOT / name, home / "tree")
    return home


def keep_what_takes_long(home: Path) -> None:
    """Have the kernel and the packages, which are verified, in the cache; all else is made."""
    build = find_kernel(read_pin("7.3"), places.cache())
    assert build is not None
    cache = home / ".cache" / "firstflight"
    shutil.copytree(build.binary.parent, cache / "kernels" / build.binary.parent.name)
    shutil.copytree(places.cache() / "roots" / "packages", cache / "roots" / "packages")


def test_the_same_bits_without_anything(tmp_path: Path) -> None:
    if not BUSYBOX.exists():
        pytest.skip("no busybox-static")
    root = tmp_path / "machine"
    home = make_machine(root)
    keep_what_takes_long(home)
    for path in (home, *home.rglob("*")):
        os.chown(path, USER, USER, follow_symlinks=False)
    argv = (*("unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", str(root)),
            *("HOME=/home/somebody", "PATH=/bin", "PIP_CERT=/home/somebody/authorities.crt"),
            f"FIRSTFLIGHT_DEBIAN_MIRROR={debian_archives()['debian']}",
            *("/home/somebody/tree/run.sh", "run", "/home/somebody/tree/configs/nightly.toml", "-o",
              "/home/somebody/ran"))  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "USER_ID": str(USER)}
    done = proc.run(argv, env=environment, check=False, timeout_s=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Same to the bit as the committed results" in done.stdout
    assert all(record.outcome == "ok" for record in read_records(home / "ran"))
    facts = load_manifest(home / "ran").environment.facts
    assert facts["user"] == "ordinary"
    assert not (root / "lib64").exists()
