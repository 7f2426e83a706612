"""The name server: what its command says, and what the real dnsmasq answers."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.addresses import format_address
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.server.resolver import name_files, resolve, resolver_argv
from tests.lab.wires import RIGHT_ADDRESS, Ends, joined

ADDRESSES = {"www.page.test": ("10.10.0.1",), "img.page.test": ("10.10.0.2", "2001:db8::2")}
A, AAAA, HTTPS = 1, 28, 65
NO_ERROR, NO_SUCH_NAME = 0, 3
# Asked once and waited for: a question without an answer ends in this test's own time-out.
PATIENT = ("env", "RES_OPTIONS=timeout:30 attempts:5", "getent", "ahosts")
ANSWER_S = 60.0


def test_the_command_knows_the_hosts_and_nothing_else() -> None:
    argv = resolver_argv(ADDRESSES, "10.10.255.53", Path("/scratch/pid"))
    assert argv[0] == "dnsmasq"
    assert [word for word in argv if word.startswith("--host-record")] == [
        "--host-record=www.page.test,10.10.0.1,3600",
        "--host-record=img.page.test,10.10.0.2,2001:db8::2,3600",
    ]
    for word in (
        *("--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--local=/#/"),
        *("--listen-address=10.10.255.53", "--bind-interfaces", "--pid-file=/scratch/pid"),
    ):
        assert word in argv


@pytest.fixture(scope="module")
def ends() -> Iterator[Ends]:
    with joined("d") as pair:
        yield pair


@contextmanager
def resolving(ends: Ends, mode: str, scratch: Path) -> Iterator[Namespace]:
    """The name server of ``mode``; yields the client's namespace."""
    client, server = ends
    with (
        name_files(client, RIGHT_ADDRESS),
        resolve(client, server, ADDRESSES, RIGHT_ADDRESS, mode, scratch),
    ):
        yield client


def ask(client: Namespace, name: str, kind: int) -> tuple[int, list[str]]:
    """Response code and addresses; fails when no answer comes."""
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
    question = labels + b"\0" + struct.pack(">HH", kind, 1)
    with client.entered():
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with end:
        end.settimeout(ANSWER_S)
        end.sendto(struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + question, (RIGHT_ADDRESS, 53))
        answer = end.recv(4096)
    number, flags, _, answers, _, _ = struct.unpack(">6H", answer[:12])
    assert number == 7
    position, found = 12 + len(question), []
    for _ in range(answers):
        answered, _, _, size = struct.unpack(">HHIH", answer[position + 2 : position + 12])
        data = answer[position + 12 : position + 12 + size]
        assert answered in (A, AAAA)
        found.append(format_address(data))
        position += 12 + size
    return flags & 15, found


@pytest.mark.root
def test_known_hosts_have_their_address(ends: Ends, tmp_path: Path) -> None:
    with resolving(ends, "resolver", tmp_path) as client:
        for host, addresses in ADDRESSES.items():
            assert ask(client, host, A) == (NO_ERROR, [addresses[0]])
            assert ask(client, host, AAAA) == (NO_ERROR, list(addresses[1:]))


@pytest.mark.root
@pytest.mark.parametrize("kind", [AAAA, HTTPS])
def test_known_hosts_have_nothing_else(ends: Ends, tmp_path: Path, kind: int) -> None:
    with resolving(ends, "resolver", tmp_path) as client:
        assert ask(client, "www.page.test", kind) == (NO_ERROR, [])


@pytest.mark.root
@pytest.mark.parametrize("kind", [A, AAAA, HTTPS])
def test_other_names_do_not_exist(ends: Ends, tmp_path: Path, kind: int) -> None:
    with resolving(ends, "resolver", tmp_path) as client:
        for name in ("www.example.com", "page.example", "x.www.page.test", "localhost.test"):
            assert ask(client, name, kind) == (NO_SUCH_NAME, []), name


@pytest.mark.root
@pytest.mark.parametrize("mode", ["resolver", "hosts"])
def test_programs_in_the_client_find_the_hosts(ends: Ends, tmp_path: Path, mode: str) -> None:
    with resolving(ends, mode, tmp_path) as client:
        for host, (address, *_) in ADDRESSES.items():
            said = proc.run((*client.prefix, "getent", "ahostsv4", host)).stdout
            assert said.split()[0] == address
        unknown = proc.run((*client.prefix, *PATIENT, "other.test"), check=False, timeout_s=60)
        assert unknown.returncode == 2


@pytest.mark.root
def test_hosts_mode_runs_no_name_server(ends: Ends, tmp_path: Path) -> None:
    with resolving(ends, "hosts", tmp_path):
        assert proc.run(("ip", "netns", "pids", ends[1].name)).stdout == ""


@pytest.mark.root
def test_the_host_keeps_its_own_files(ends: Ends, tmp_path: Path) -> None:
    before = [Path(name).read_bytes() for name in ("/etc/hosts", "/etc/resolv.conf")]
    with resolving(ends, "hosts", tmp_path):
        assert [Path(p).read_bytes() for p in ("/etc/hosts", "/etc/resolv.conf")] == before


@pytest.mark.root
@pytest.mark.parametrize("mode", ["resolver", "hosts"])
def test_nothing_is_left(ends: Ends, tmp_path: Path, mode: str) -> None:
    with pytest.raises(KeyError), resolving(ends, mode, tmp_path):
        assert (Path("/etc/netns") / ends[0].name / "resolv.conf").exists()
        raise KeyError
    assert not (Path("/etc/netns") / ends[0].name).exists()
    assert proc.run(("ip", "netns", "pids", ends[1].name)).stdout == ""


@pytest.mark.root
def test_an_address_that_it_cannot_have(ends: Ends, tmp_path: Path) -> None:
    client, server = ends
    with (
        pytest.raises(LabError, match=r"not ready: [^\0]*10\.99\.0\.9"),
        name_files(client, "10.99.0.9"),
        resolve(client, server, ADDRESSES, "10.99.0.9", "resolver", tmp_path),
    ):
        pytest.fail("it cannot listen there")
    assert not (Path("/etc/netns") / client.name).exists()
