"""A stand-in for the runner: puts a Python program into a jail as a guest's kernel would be.

Run by a plain interpreter, because another user may not reach this environment's:
``inmate.py PLACE LANDLOCK NAMESPACES WORD...``.  Prints what the program printed, and what was seen
of its processes from outside as it ran.
"""

import ctypes
import json
import os
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from testbed.base import proc
from testbed.kernel.run import jail
from testbed.kernel.run.jail import GuestFiles, jailed, open_stage

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22
UNSHARE = 272
LOADER = Path("/lib64/ld-linux-x86-64.so.2").resolve()
DEADLINE_S = 60.0


def forbid_namespaces() -> None:
    """Have unshare(2) fail, as in most containers (seccomp(2))."""
    refused, allowed = 0x50001, 0x7FFF0000
    rules = ((0x20, 0, 0, 0), (0x15, 0, 1, UNSHARE), (0x06, 0, 0, refused), (0x06, 0, 0, allowed))
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *rule) for rule in rules))
    described = struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if failed or libc.prctl(PR_SET_SECCOMP, 2, described, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter")


def descendants(process: int) -> list[int]:
    """All that a process has started, and that they have."""
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found[1:]


def look(out: Path, child: "proc.Process") -> dict[str, dict[str, str]]:
    """Status of all processes of a jail, by their names, once the program is ready."""
    deadline = time.monotonic() + DEADLINE_S
    while not (out / "ready").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    seen = {}
    for number in (child.pid, *descendants(child.pid)):
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
        seen[str(number)] = {k: v.strip() for k, _, v in (line.partition(":") for line in lines)}
    (out / "seen").touch()
    return seen


def main() -> None:
    """Run it."""
    place, landlock, namespaces = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "namespaces"
    if not namespaces:
        forbid_namespaces()
    # A user that no guest of a run has: one test takes all the processes that its user may have.
    slot = 100 + os.getpid() % 300
    folders = (place / name for name in ("bundle", "page", "out"))
    contents = GuestFiles(LOADER, *folders, usr=Path("/usr"))
    jail.program_file = lambda: place / "native" / "jail"
    with (
        open_stage(contents, slot, landlock=landlock) as stage,
        (place / "said").open("w+b") as said,
    ):
        stage.environment["PROBE_ASKED"] = "bundle/asked.json"
        words = ("loader", "/usr/bin/python3", "-I", "-S", *sys.argv[4:])
        with jailed(stage, words, said) as child:
            seen = look(place / "out", child) if "bundle/probe.py" in words else {}
            child.wait(DEADLINE_S)
        said.seek(0)
        scratch = Path(stage.environment["TMPDIR"]).readlink()
        print(json.dumps({"said": said.read().decode(), "seen": seen, "scratch": str(scratch)}))


if __name__ == "__main__":
    main()
