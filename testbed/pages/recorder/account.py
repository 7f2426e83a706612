"""Who runs the browser: it meets whatever a page sends, so it should be nobody in particular."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ORDINARY = "nobody"
TIED = ("setpriv", "--pdeathsig", "KILL")
_SYSTEM_SCRATCH = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - for mkdtemp


@dataclass(frozen=True, slots=True)
class Account:
    """``prefix`` starts a command as ``user``, and ends it with the thread that started it.

    ``remark`` says why the user is not as it should be.
    """

    user: int
    group: int = 0
    prefix: tuple[str, ...] = TIED
    remark: str = ""

    def own(self, folder: Path) -> None:
        """Give ``folder`` and what is in it to this account."""
        if self.user != os.geteuid():
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.user, self.group)


def choose_scratch(folder: Path) -> Path:
    """``folder``; for root, a temporary folder if an ordinary user cannot reach ``folder``."""
    if os.geteuid() != 0 or next(_closed([folder / "any"]), None) is None:
        return folder
    places = (Path(tempfile.gettempdir()), *_SYSTEM_SCRATCH)
    open_ones = (p for p in places if p.is_dir() and next(_closed([p / "any"]), None) is None)
    return next(open_ones, folder)


def choose_account(*needed: Path) -> Account:
    """This user; for root, an ordinary one that can reach all of ``needed``.

    Chromium refuses its sandbox to root.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid())
    closed = next(_closed(needed), None)
    if closed is not None:
        return Account(0, remark=f"the browser runs as root, without its sandbox: {closed}")
    ordinary = pwd.getpwnam(ORDINARY)
    prefix = (
        *(*TIED, f"--reuid={ordinary.pw_uid}", f"--regid={ordinary.pw_gid}"),
        *("--clear-groups", "--no-new-privs"),
    )
    return Account(ordinary.pw_uid, ordinary.pw_gid, prefix)


def _closed(needed: Iterable[Path]) -> Iterator[str]:
    """What an ordinary user cannot reach."""
    for path in needed:
        for folder in path.resolve().parents:
            if not folder.stat().st_mode & 0o001:
                yield f"{folder} is closed to other users"
