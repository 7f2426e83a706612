"""What stands for the trial in an enclosure: it makes everything that a trial makes, and waits.

Arguments: ``trial TAG`` (the bundle's file ``orders`` says what to do then) or ``probe``.
"""

import ctypes
import json
import os
import subprocess  # noqa: TID251 - stands alone in a bundle
import sys
import time
from pathlib import Path

OUT = Path("/ff/out")


def run(*argv: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(argv, check=True)


def make_traces(tag: str) -> None:
    """Namespaces, links, addresses, routes, sysctls, files, mounts, processes."""
    Path("/etc/hosts").touch()
    for role in ("client", "server"):
        run("ip", "netns", "add", tag + role)
        Path(f"/etc/netns/{tag}{role}").mkdir()
        Path(f"/etc/netns/{tag}{role}/hosts").write_text("10.0.0.1 x.test\n")
    peer = ("peer", "name", "s0", "netns", tag + "server")
    run("ip", "link", "add", "c0", "netns", tag + "client", "type", "veth", *peer)
    run("ip", "-n", tag + "client", "address", "add", "10.0.0.1/24", "dev", "c0")
    run("ip", "tuntap", "add", "dev", "d0", "mode", "tap")
    run("ip", "link", "set", "d0", "up")
    run("ip", "route", "add", "10.99.0.0/16", "dev", "d0")
    Path("/proc/sys/net/ipv4/tcp_fastopen").write_text("519")
    Path("/etc/chromium").mkdir(exist_ok=True)
    mount = ctypes.CDLL(None, use_errno=True).mount
    if mount(b"none", b"/var/lib", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")
    Path(f"/tmp/{tag}scratch").write_text("x")
    # One that nobody waits for, in a session of its own.
    subprocess.Popen(("setsid", "sleep", "86400"))


def main() -> None:
    """Do what is ordered."""
    if sys.argv[1] == "probe":
        print(json.dumps({"backend": "tap", "scheduler": "fifo"}))
        return
    orders = Path("/ff/bundle/orders").read_text().split()
    make_traces(sys.argv[2])
    spaces = {kind: Path(f"/proc/self/ns/{kind}").stat().st_ino for kind in ("net", "pid", "mnt")}
    seen = {"tag": sys.argv[2], "spaces": spaces, "environment": dict(os.environ)}
    (OUT / "seen.json.partial").write_text(json.dumps(seen))
    (OUT / "seen.json.partial").rename(OUT / "seen.json")
    if "meet" in orders:
        while not (OUT / "go").exists():
            time.sleep(0.01)
    if "hang" in orders:
        time.sleep(86400)
    if "fail" in orders:
        sys.exit("it went wrong")
    (OUT / "link").symlink_to("/etc/passwd")
    (OUT / "observation.json").write_text(json.dumps({"virtual_s": 1.5}))


if __name__ == "__main__":
    main()
