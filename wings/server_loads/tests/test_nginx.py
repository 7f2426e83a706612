"""nginx under load: its configuration by the spec, and one that runs, counts and ends."""

from __future__ import annotations

import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.model import TcpSpec
from tests.native.load import LOOPBACK, free_port
from wings.server_loads.nginx import configuration, serving_nginx
from wings.server_loads.spec import ServerSpec
from wings.server_loads.tests.loads import LOAD


class Here(Namespace):
    """The namespace that the test is in."""

    @property
    def prefix(self) -> tuple[str, ...]:
        return ()


def test_a_worker_of_its_own_processor_and_today_s_keep_alive(tmp_path: Path) -> None:
    text = configuration(tmp_path, "10.0.0.1:80", LOAD, 512, (1,))
    assert "listen 10.0.0.1:80 backlog=512;" in text
    assert "worker_processes 1;\nworker_cpu_affinity 10;" in text
    assert "keepalive" not in text


def test_two_workers_have_a_socket_each_and_fast_open_has_a_queue(tmp_path: Path) -> None:
    load = replace(LOAD, server=ServerSpec(workers=2), tcp=TcpSpec(tfo=True))
    text = configuration(tmp_path, "10.0.0.1:80", load, 512, (1, 3))
    assert "listen 10.0.0.1:80 backlog=512 fastopen=4096 reuseport;" in text
    assert "worker_processes 2;\nworker_cpu_affinity 10 1000;" in text


def test_without_processors_it_runs_on_any(tmp_path: Path) -> None:
    assert "affinity" not in configuration(tmp_path, "10.0.0.1:80", LOAD, 512, ())


@pytest.mark.root
def test_it_says_what_it_accepted_and_answered(tmp_path: Path) -> None:
    address = f"{LOOPBACK}:{free_port()}"
    load = replace(LOAD, server=ServerSpec(response_bytes=300))
    with serving_nginx(Here("here"), address, load, 16, (), tmp_path / "nginx") as end:
        for _ in range(3):
            with urllib.request.urlopen(f"http://{address}/") as answer:
                assert answer.read() == b"x" * 300
        counts = end().counts
    assert counts == {"accepted": 3, "requests": 3, "responses": 3, "lacked": 0}


@pytest.mark.root
def test_one_that_cannot_listen_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(LabError, match=r"nginx did not start: .*bind"),
        serving_nginx(Here("here"), "192.0.2.1:1", LOAD, 16, (), tmp_path / "nginx"),
    ):
        pass
