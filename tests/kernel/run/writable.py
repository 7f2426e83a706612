"""Every path that a process may write, by access(2), as JSON; process ids are N.

Run alone by a plain interpreter.  Nothing is written, but by access(2) Landlock is not seen.
"""

import json
import os
import re
import sys


def list_writable() -> list[str]:
    """Every path that may be written, links aside; read-only trees without devices are left out."""
    writable, waiting = [], ["/"]
    while waiting:
        folder = waiting.pop()
        if os.access(folder, os.W_OK):
            writable.append(folder)
        flags = os.statvfs(folder).f_flag
        if folder == "/usr" and flags & os.ST_RDONLY and flags & os.ST_NODEV:
            continue
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif os.access(entry.path, os.W_OK):
                    writable.append(entry.path)
            except OSError:
                continue
    return sorted(writable)


if __name__ == "__main__":
    found = {re.sub("/[0-9]+", "/N", path) for path in list_writable()}
    sys.stdout.write(json.dumps(sorted(found)))
