"""Images as Debian's buildah builds and runs them: no registry, no daemon, chroot isolation.

A base image is bootstrapped from the mirrors that this machine uses, with the certificate
authorities and pip settings that it has, so that the Dockerfile names none of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns
from uuid import uuid4

from testbed.base import proc
from testbed.base.debian import MAIN, SECURITY, debian_archives

BASE = "localhost/debian"
AUTHORITIES = Path("/usr/local/share/ca-certificates")
SETTINGS = Path("/etc/pip.conf")
USER = "1000:1000"
# What Debian's own small image leaves out, too.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_STEP_S = 1500.0


@dataclass(frozen=True, slots=True)
class Engine:
    """buildah with its storage in a folder of its own."""

    folder: Path

    def buildah(self, *words: str, check: bool = True) -> CompletedProcess[str]:
        """Run one command of buildah's to its end."""
        argv = ("buildah", "--root", str(self.folder / "storage"), "--runroot",
                str(self.folder / "run"), "--storage-driver", "vfs", *words)  # fmt: skip
        return proc.run(argv, timeout_s=_STEP_S, check=check)

    def make_base(self, suite: str) -> None:
        """Bootstrap the base image of a Debian suite."""
        container = self.buildah("from", "scratch").stdout.strip()
        folder = self.buildah("mount", container).stdout.strip()
        proc.run(_mmdebstrap_argv(suite, folder), timeout_s=_STEP_S)
        self.buildah("umount", container)
        self.buildah("commit", "--quiet", "--rm", container, BASE)

    def build(self, context: Path, file: Path, target: str, name: str, revision: str) -> str:
        """Build a stage of the Dockerfile ``file``, and return all that was said."""
        done = self.buildah(
            *("bud", "--isolation", "chroot", "--layers=false", "--format", "docker"),
            *("--build-arg", f"BASE={BASE}", "--build-arg", f"REVISION={revision}"),
            *("--target", target, "--tag", name),
            *("--file", str(file), str(context)),
        )
        return done.stdout + done.stderr

    def start(self, image: str) -> Container:
        """Make a container of an image, in which commands can be run."""
        return Container(self, self.buildah("from", image).stdout.strip())


@dataclass(frozen=True, slots=True)
class Container:
    """A container whose commands are an ordinary user's, behind the default system call filter."""

    engine: Engine
    name: str

    def run(self, *argv: str, user: str = USER) -> CompletedProcess[str]:
        """Run a command in the image's working directory and environment, whatever its status.

        It prints to files, for buildah may end before it has passed on what came last.
        """
        root = Path(self.engine.buildah("mount", self.name).stdout.strip())
        name = f"/tmp/printed-{uuid4()}"
        done = self.engine.buildah(
            *("run", "--isolation", "chroot", "--user", user, self.name, "--"),
            *("sh", "-c", 'exec >"$0.out" 2>"$0.err" "$@"', name, *argv),
            check=False,
        )
        printed = [root / f"{name[1:]}.{which}" for which in ("out", "err")]
        if not all(file.exists() for file in printed):  # the command was not begun
            return done
        done.stdout, done.stderr = (file.read_text("utf-8", "replace") for file in printed)
        for file in printed:
            file.unlink()
        return done

    def shell(self, script: str) -> str:
        """Return what a script prints."""
        return self.run("sh", "-c", script).stdout


def _mmdebstrap_argv(suite: str, folder: str) -> tuple[str, ...]:
    there = AUTHORITIES.is_dir() and any(AUTHORITIES.iterdir())
    hooks, include = [], []
    if there:
        hooks += [
            f"copy-in {AUTHORITIES} {AUTHORITIES.parent}",
            'chroot "$1" update-ca-certificates',
        ]
        include.append("--include=ca-certificates")
    if SETTINGS.is_file():
        hooks.append(f"copy-in {SETTINGS} {SETTINGS.parent}")
    archives = debian_archives()
    return (
        *("mmdebstrap", "--quiet", "--mode=root", "--format=directory", "--variant=minbase"),
        *include,
        *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
        *(f"--aptopt={line}" for line in _proxies()),
        *(f"--customize-hook={hook}" for hook in hooks),
        *(suite, folder),
        f"deb {archives[MAIN]} {suite} main",
        f"deb {archives[SECURITY]} {suite}-security main",
    )


def _proxies() -> list[str]:
    wanted = ("apt-config", "dump", "--format", '%F "%v";%n', "Acquire::http::Proxy")
    return [line for line in proc.run(wanted, env=dict(os.environ)).stdout.splitlines() if line]
