"""Program of a guest that runs one selftest; it has the standard library alone.

It gets a copy of the tests that it may write to, and leaves what each command said, how it ended,
and all that the kernel said (dmesg(1), /dev/kmsg).  What runs too long by the guest's own clock is
ended.
"""

from __future__ import annotations

import os

os.write(3, b"x")  # ready (native/init.c): what comes now is no part of an image
os.read(0, 1)

import json  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402, TID251 - in a guest
import time  # noqa: E402
from contextlib import suppress  # noqa: E402
from pathlib import Path  # noqa: E402

OUT = Path("/ff/out")
PLACE = Path("/tmp/tests")  # noqa: S108 - a guest's /tmp is its own tmpfs
PROGRAMS = "/ff/bundle/programs"
MOST_BYTES = 1 << 20


def main() -> None:
    """Run the test in /ff/out/test.json."""
    test = json.loads((OUT / "test.json").read_text())
    folder = lay_out() / test["folder"]
    environment = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
                   "BASH_ENV": f"{PROGRAMS}/functions.sh"}  # fmt: skip
    (OUT / "boot.txt").write_bytes(read_kernel(log := open_kernel_log()))
    results = []
    for number, command in enumerate(test["commands"]):
        said = OUT / f"output-{number}.txt"
        status = perform(command["argv"], folder, environment, said, test["limit_s"])
        results.append({"name": command["name"], "status": status})
    (OUT / "kernel.txt").write_bytes(read_kernel(log))
    done = {"virtual_s": time.monotonic(), "results": results}
    (OUT / "observation.json").write_text(json.dumps(done))


def lay_out() -> Path:
    """Return a folder with the tests, which can be written to: in memory, above the host's."""
    # Scripts of netdev's machines expect a bash, which sh(1) is not in Debian.
    mount("--bind", "/usr/bin/bash", "/usr/bin/dash")
    layers = {name: Path("/tmp/layers") / name for name in ("upper", "work")}  # noqa: S108
    for layer in (*layers.values(), PLACE):
        layer.mkdir(parents=True)
    options = f"lowerdir=/ff/page,upperdir={layers['upper']},workdir={layers['work']}"
    mount("-t", "overlay", "overlay", "-o", options, str(PLACE))
    return PLACE


def mount(*words: str) -> None:
    """Mount what is asked for, as its manual has it."""
    subprocess.run(["mount", *words], check=True)


def perform(
    argv: list[str], folder: Path, environment: dict[str, str], said: Path, limit_s: float
) -> int | None:
    """Run a command and return its status; ``None``: it did not end by itself."""
    with said.open("wb") as sink, subprocess.Popen(
        argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
        start_new_session=True,
    ) as child:  # fmt: skip
        try:
            status: int | None = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # whatever it has left behind
    if said.stat().st_size > MOST_BYTES:
        os.truncate(said, MOST_BYTES)
    return status


def open_kernel_log() -> int:
    """Open all that the kernel says, from its boot on."""
    return os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)


def read_kernel(log: int) -> bytes:
    """Return what the kernel has said and was not read yet, as dmesg(1) shows it."""
    lines = []
    while True:
        try:
            record = os.read(log, 8192)
        except BlockingIOError:
            break
        except BrokenPipeError:  # older ones were written over
            continue
        # 4,27,2112,-;text: priority, number, microseconds (Documentation/ABI/testing/dev-kmsg)
        head, _, text = record.split(b"\n", 1)[0].partition(b";")
        seconds, micros = divmod(int(head.split(b",")[2]), 1_000_000)
        lines.append(b"[%5d.%06d] %s" % (seconds, micros, text))
    return b"\n".join(lines) + b"\n"


if __name__ == "__main__":
    main()
