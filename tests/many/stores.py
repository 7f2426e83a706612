"""A bucket and another machine's folder, on this machine: served on loopback, kept in a folder."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from testbed.base import proc
from tests.many.enclosure import enclosed_argv
from tests.native.load import LOOPBACK, free_port

Environment = Mapping[str, str]
SIGNED = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
)
"""What moto takes for a signature: anybody's."""


class StorePlace(Protocol):
    """A store that runs may name, and what somebody else does to it."""

    @property
    def address(self) -> str:
        """What FIRSTFLIGHT_STORE says."""

    @property
    def environment(self) -> Environment:
        """What a run needs to reach it."""

    def list_entries(self) -> list[str]:
        """The names of its files."""

    def read(self, name: str) -> bytes:
        """A file."""

    def write(self, name: str, data: bytes) -> None:
        """Put other bytes in a file's place."""


@dataclass(frozen=True)
class Bucket:
    """A bucket of the S3 server at ``endpoint``, where any signature is as good."""

    endpoint: str
    name: str

    @property
    def address(self) -> str:
        return f"s3://{self.name}/results"

    @property
    def environment(self) -> Environment:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def list_entries(self) -> list[str]:
        listed = self.ask("GET", "?list-type=2").decode()
        return sorted(re.findall(r"<Key>([^<]+)</Key>", listed))

    def read(self, name: str) -> bytes:
        return self.ask("GET", f"/{name}")

    def write(self, name: str, data: bytes) -> None:
        self.ask("PUT", f"/{name}", data)

    def ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        """Ask the server, whatever proxies the environment names."""
        asking = http.client.HTTPConnection(self.endpoint.removeprefix("http://"), timeout=60)
        with closing(asking):
            asking.request(method, f"/{self.name}{path}", data, {"Authorization": SIGNED})
            answer = asking.getresponse()
            body = answer.read()
        assert answer.status == http.HTTPStatus.OK, body
        return body


@dataclass(frozen=True)
class Host:
    """A machine that ssh reaches, with a folder of ours; an agent has the key."""

    port: int
    folder: Path
    agent: Path

    @property
    def address(self) -> str:
        return f"ssh://root@{LOOPBACK}:{self.port}{self.folder}/results"

    @property
    def environment(self) -> Environment:
        return {"SSH_AUTH_SOCK": str(self.agent)}

    def list_entries(self) -> list[str]:
        found = self.folder.rglob("*")
        return sorted(str(path.relative_to(self.folder)) for path in found if path.is_file())

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)


def answers(port: int) -> Callable[[], bool]:
    """Whether somebody listens on a port of the loopback device."""

    def connects() -> bool:
        with suppress(OSError), socket.create_connection((LOOPBACK, port), 1):
            return True
        return False

    return connects


@contextmanager
def serving_s3(server: Path, log: Path) -> Iterator[str]:
    """Serve S3 by moto's ``server``; yield its address."""
    port = free_port()
    with (
        log.open("wb") as output,
        proc.started(
            enclosed_argv(str(server), "-H", LOOPBACK, "-p", str(port)),
            stdout=output,
            stderr=output,
        ) as child,
    ):
        assert proc.becomes_ready(child, answers(port)), log.read_text()
        yield f"http://{LOOPBACK}:{port}"


@contextmanager
def serving_ssh(folder: Path, socket_folder: Path) -> Iterator[Host]:
    """Let root in by ssh, from this machine and by a key of our own.

    sshd wants a folder of root's in /run: it sees a /run of its own.
    """
    port, agent = free_port(), socket_folder / "agent"
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    assert sshd is not None
    for name in ("host", "user"):
        proc.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)))
    (folder / "kept").mkdir()
    (folder / "sshd_config").write_text(
        f"ListenAddress {LOOPBACK}:{port}\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nUseDNS no\n"
        "PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "MaxStartups 100\nSubsystem sftp internal-sftp\n"
    )
    own_run = ("--perms", "0755", "--tmpfs", "/run", "--perms", "0755", "--dir", "/run/sshd")
    start = enclosed_argv(sshd, "-D", "-e", "-f", f"{folder}/sshd_config", options=own_run)
    with (
        (folder / "sshd.log").open("wb") as log,
        proc.started(start, stdout=log, stderr=log) as child,
        proc.started(enclosed_argv("ssh-agent", "-D", "-a", str(agent))) as keeper,
    ):
        assert proc.becomes_ready(child, answers(port)), (folder / "sshd.log").read_text()
        assert proc.becomes_ready(keeper, agent.exists)
        added = os.environ | {"SSH_AUTH_SOCK": str(agent)}
        proc.run(("ssh-add", "-q", str(folder / "user")), env=added)
        yield Host(port, folder / "kept", agent)
