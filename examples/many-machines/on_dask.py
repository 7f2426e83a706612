#!/usr/bin/env python3
"""Runs an experiment on a Dask cluster, a part of the plan in each task, and merges the parts.

Usage, in the work tree, by a Python that has dask.distributed:
  examples/many-machines/on_dask.py SCHEDULER:PORT PARTS CONFIG OUT [RUN OPTIONS]
All workers see the work tree and OUT at the same paths.  A part uses all cores of its machine: give
workers one thread each.  The same command again goes on with what has not ended.
"""

import os
import subprocess  # noqa: TID251  it goes to workers, who have no module of ours
import sys
from pathlib import Path

from distributed import Client, as_completed


def main() -> int:
    """Run the parts, then let the merge say whether all are there and agree."""
    address, parts, config, out, *options = sys.argv[1:]
    folder = Path(f"{out}.parts")
    folder.mkdir(parents=True, exist_ok=True)
    # A part ends with its worker (prctl(2)).  What it comes to is in its folder, and nowhere else:
    # no answer of a worker is asked for.
    words = 'exec >>"$4.parts/$1.log" 2>&1; exec setpriv --pdeathsig TERM "$0" "$@"'
    start = ["bash", "-c", words, "examples/many-machines/part.sh"]
    with Client(address) as client:
        numbers, lost = {}, []
        for number in range(1, int(parts) + 1):
            argv = [*start, str(number), parts, config, out, *options]
            future = client.submit(subprocess.call, argv, cwd=str(Path.cwd()), pure=False)
            numbers[future] = number
        for future in as_completed(numbers):
            if future.status != "finished":
                lost.append(numbers[future])
            print(f"part {numbers[future]} of {parts}: {future.status}", file=sys.stderr)
    if lost:
        print("the cluster has lost parts: run this again to go on", file=sys.stderr)
        return 4
    folders = [str(folder / str(number)) for number in range(1, int(parts) + 1)]
    os.execv("./run.sh", ["./run.sh", "merge", *folders, "-o", out])  # noqa: S606  no shell


if __name__ == "__main__":
    sys.exit(main())
