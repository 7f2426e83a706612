"""The verb ``serve``: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess  # noqa: TID251 - for a constant
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from firstflight.cli import serve as cli_serve
from firstflight.cli.exits import run_command
from firstflight.cli.serve import serve
from testbed.base import proc
from testbed.base.errors import EXIT_CONFIGURATION, EXIT_OK
from testbed.base.places import ROOT
from testbed.model import Replay, Substitution
from testbed.root.cache import Root
from testbed.runner import prepare
from testbed.server.loopback import LoopbackSite
from testbed.setup.clean import find_leftovers, remove
from tests.hallway import make_services
from tests.server.test_loopback import BODIES, IMG, WWW, build, curl

DEADLINE_S = 120.0


@pytest.fixture
def ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Root
) -> Callable[..., tuple[int, Path]]:
    """Runs the verb on a small page and, once the site was told, uses it and interrupts."""
    built = build(tmp_path / "built")
    monkeypatch.setattr(cli_serve, "ensure_named", lambda *_asked: root)
    monkeypatch.setattr(prepare, "built_page", lambda _name, _cache: built)
    tell = cli_serve._show_site

    def run(
        *arguments: str,
        use: Callable[[LoopbackSite], object] = lambda _site: None,
        by: signal.Signals = signal.SIGINT,
    ) -> tuple[int, Path]:
        scratch = []

        def told(page: str, site: LoopbackSite, as_json: bool) -> None:
            tell(page, site, as_json)
            scratch.append(site.scratch)
            use(site)
            os.kill(os.getpid(), by)

        monkeypatch.setattr(cli_serve, "_show_site", told)
        code = run_command(serve, args=["small", *arguments], obj=make_services(tmp_path))
        return code, scratch[0]

    return run


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_the_normal_end(
    ended: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str], by: signal.Signals
) -> None:
    before = threading.enumerate()
    code, scratch = ended(by=by)
    assert code == EXIT_OK
    assert not scratch.exists()
    assert set(threading.enumerate()) <= set(before)
    out = capsys.readouterr().out
    assert f"small: https://{WWW}/\n" in out
    assert f"MAP {IMG}:8443 127.0.0.1:" in out
    assert "--ignore-certificate-errors-spki-list=" in out
    assert f"curl --connect-to {WWW}:443:127.0.0.1:" in out
    assert "0 requests answered exactly, 0 inexactly, 0 missed\n" in out


def test_the_end_tells_how_requests_were_answered(
    ended: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    def use(site: LoopbackSite) -> None:
        for path in ("a.js?v=1", "a.js?v=2", "none"):
            curl(site, f"https://{IMG}/{path}")

    assert ended(use=use)[0] == EXIT_OK
    out = capsys.readouterr().out
    assert out.endswith(
        "1 requests answered exactly, 1 inexactly, 1 missed\n"
        f"inexact: GET https://{IMG}/a.js?v=2\n     by: GET https://{IMG}/a.js?v=1\n"
        f"missed:  GET https://{IMG}/none\n"
    )


def test_json_is_one_object_for_the_site_and_one_for_its_end(
    ended: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    def use(site: LoopbackSite) -> None:
        for url in BODIES:
            curl(site, url)

    assert ended("--json", "--protocol", "h2", use=use)[0] == EXIT_OK
    site, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert site["url"] == f"https://{WWW}/"
    assert all(each["h2"] for each in site["listeners"] if each["tls"])
    assert end["replay"]["exact"] == len(BODIES)
    assert end["replay"]["protocols"][f"https://{WWW} HTTP/2.0"] == 1


def test_many_misses_are_not_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told = Replay(0, (Substitution("GET a", "GET b"),), tuple(f"GET {i}" for i in range(50)))
    cli_serve._show_replay(told, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "... and 31 more"
    assert len(lines) == 23


@pytest.mark.parametrize(
    "arguments", [["--protocol", "h3"], ["--port", "0"], ["--port", "65536"], []]
)
def test_wrong_arguments(tmp_path: Path, arguments: list[str]) -> None:
    page = ["small"] if arguments else ["no-such-page"]
    code = run_command(serve, args=[*page, *arguments], obj=make_services(tmp_path))
    assert code == EXIT_CONFIGURATION


def test_the_printed_command_is_one_for_a_shell(
    ended: Callable[..., tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[str] = []

    def use(_site: LoopbackSite) -> None:
        lines = capsys.readouterr().out.splitlines()
        line = lines[lines.index("curl:") + 1]
        fetched.append(proc.run(("sh", "-c", line)).stdout)

    ended(use=use)
    assert fetched == [BODIES[f"https://{WWW}/"].decode()]


SERVE = """\
import sys
from pathlib import Path
from testbed.base import places
from testbed.root.cache import ensure_named
from testbed.runner import prepare
from firstflight.cli import serve as cli_serve
from firstflight.cli.serve import serve
from firstflight.cli.exits import run_command
from tests.hallway import make_services
cli_serve.ensure_named = lambda name, _cache, say: ensure_named(name, places.cache(), say)
prepare.built_page = lambda _name, _cache: Path(sys.argv[1]) / "built"
run_command(serve, args=["small", "--json"], obj=make_services(Path(sys.argv[1])))
"""


@pytest.mark.usefixtures("root")
def test_killed_it_leaves_no_server_and_a_folder_that_clean_finds(tmp_path: Path) -> None:
    build(tmp_path / "built")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    argv = (sys.executable, "-c", SERVE, str(tmp_path))
    env = {**os.environ, "TMPDIR": str(temporary)}
    with proc.started(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        site = json.loads(child.stdout.readline())
        at = (site["listeners"][0]["address"], site["listeners"][0]["bound_port"])
        socket.create_connection(at, timeout=5).close()
        (folder,) = temporary.iterdir()
        server = os.pidfd_open(int((folder / "server" / "nginx.pid").read_text()))
        try:
            (leftover,) = find_leftovers(tmp_path / "cache", temporary)
            assert leftover.kept == "a process uses it"
            child.kill()
            assert select.select([server], [], [], DEADLINE_S)[0], "nginx goes on"
        finally:
            os.close(server)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(at, timeout=5)
    found = find_leftovers(tmp_path / "cache", temporary)
    assert [(leftover.path, leftover.kept) for leftover in found] == [(folder, "")]
    remove(found)
    assert list(temporary.iterdir()) == []
