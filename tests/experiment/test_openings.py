"""Openings of connections in experiment files: what no server or client could do is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiment.test_config import load, problems

PAGE = 'page = "wsj"\n'
BY_CHROMIUM = PAGE + 'client = "chromium"\n'
QUIC = 'web_server = "nginx-quic"\n'
AIOQUIC = 'web_server = "aioquic"\nprotocol = "h3"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('protocol = "h3"\n', 'protocol: "h3" beside web_server = "nginx": the root\'s nginx has'),
        (QUIC + 'protocol = "h3"\ntls_version = "1.2"\n', "QUIC has TLS 1.3 alone (RFC 9001)"),
        (QUIC + 'protocol = "h3"\n[sweep]\ntfo = [false, true]\n', "tcp.tfo = true: no connection"),
        (QUIC + 'protocol = "h3"\n[link]\nip = "dual-broken"\n', "over TCP alone (RFC 8305); take"),
        (QUIC + 'protocol = "h3"\n[tcp]\nrequests_per_connection = 5\n', "held against TCP"),
        ('key_share = "x25519mlkem768"\n', "the root's nginx does not know the group; set"),
        (QUIC + 'key_share = "x25519mlkem768"\ntls_version = "1.2"\n', "TLS 1.3 alone has the"),
        ("early_data = true\n", "early_data: true beside tls_resumption = false: only a resumed"),
        ('early_data = true\ntls_resumption = true\ntls_version = "1.2"\n', "alone has early data"),
        ("tls_resumption = true\nvisits = 2\nidle_s = 604801.0\n",
         "idle_s: 604801 s are beyond a ticket's life of 604800 s"),
        ('web_server = "aioquic"\n', 'beside protocol = "as-recorded": it speaks HTTP/3 alone'),
        (AIOQUIC + 'key_share = "x25519mlkem768"\n', "aioquic does not know the group; set"),
        (AIOQUIC + "tls_resumption = true\nvisits = 2\nidle_s = 86401.0\n",
         "idle_s: 86401 s are beyond a ticket's life of 86400 s"),
        ("[quic]\ninitcwnd_packets = 32\n", "its QUIC cannot be set; set web_server = \"aioquic\""),
        (QUIC + '[sweep]\nquic_control = ["own", "reno"]\n',
         'sweep.quic_control: "reno" beside web_server = "nginx-quic"'),
    ],
)  # fmt: skip
def test_what_no_server_could_do_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (problem,) = problems(tmp_path, BY_CHROMIUM + text)
    assert said in problem
    assert "trial.toml:" in problem


@pytest.mark.parametrize(
    ("client", "text", "said"),
    [
        ("chromium", "preconnect_pct = 50\n",
         'preconnect_pct: the client "chromium" has no preconnect_pct; take client = "graph"'),
        ("graph", "visits = 2\n", 'visits: the client "graph" has no visits; take client = '),
        ("graph", QUIC + 'protocol = "h3"\n', 'protocol: the client "graph" has no h3; take'),
        ("wget2", "tls_resumption = true\nearly_data = true\n", "no early_data; take client"),
        ("wget2", QUIC + 'key_share = "x25519mlkem768"\n', '"chromium" or "graph" or "comm'),
        ("command", 'command = "curl"\nvisits = 3\n', "or leave visits out"),
    ],
)  # fmt: skip
def test_what_no_client_could_do_is_refused(
    tmp_path: Path, client: str, text: str, said: str
) -> None:
    (problem,) = problems(tmp_path, f'{PAGE}client = "{client}"\n{text}')
    assert said in problem


def test_all_of_it_is_said_at_once(tmp_path: Path) -> None:
    swept = '[sweep]\nclient = ["graph", "wget2"]\nprotocol = ["h2", "h3"]\nvisits = [1, 2]\n'
    assert len(problems(tmp_path, PAGE + swept)) == 5


@pytest.mark.parametrize(
    "text",
    [
        QUIC + 'protocol = "h3"\ntls_resumption = true\nearly_data = true\nvisits = 2\n',
        QUIC + 'key_share = "x25519mlkem768"\n[sweep]\ntfo = [false, true]\n',
        "tls_resumption = true\nidle_s = 700000.0\n",  # one visit is idle for nothing
        "[sweep]\ntls_resumption = [false, true]\nvisits = [1, 5]\n",
    ],
)
def test_what_can_be_done_is_not(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, BY_CHROMIUM + text).conditions


def test_the_command_kind_has_the_server_s_rules_alone(tmp_path: Path) -> None:
    text = f'kind = "command"\n{PAGE}command = "curl"\n'
    assert load(tmp_path, text + QUIC + 'protocol = "h3"\n').conditions
    (problem,) = problems(tmp_path, text + 'protocol = "h3"\n')
    assert QUIC.strip() in problem


def test_what_is_left_out_is_not_refused(tmp_path: Path) -> None:
    swept = (
        '[sweep]\nprotocol = ["h2", "h3"]\ntfo = [false, true]\n'
        "tls_resumption = [false, true]\nearly_data = [false, true]\n"
    )
    left_out = 'leave_out = ["protocol=h3,tfo=true", "tls_resumption=false,early_data=true"]\n'
    found = load(tmp_path, BY_CHROMIUM + QUIC + left_out + swept)
    assert len(found.conditions) == 9
    assert len(problems(tmp_path, BY_CHROMIUM + QUIC + left_out.split(",", 2)[0] + '"]\n' + swept))


def test_each_web_server_has_its_own_quic(tmp_path: Path) -> None:
    text = (
        'protocol = "h3"\nleave_out = ["web_server=nginx-quic,initcwnd_packets=32"]\n'
        '[sweep]\nweb_server = ["nginx-quic", "aioquic"]\ninitcwnd_packets = ["own", 32]\n'
    )
    assert len(load(tmp_path, BY_CHROMIUM + text).conditions) == 3


@pytest.mark.parametrize(
    "text",
    ['traffic = "call"\n', '[link]\nchanges = "at 1 s: rtt_ms 80"\n',
     '[link]\ntrace_down = "lte-drive-down"\n'],
)  # fmt: skip
def test_what_is_of_one_load_is_refused_beside_visits(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, f"{BY_CHROMIUM}visits = 2\n{text}")
    assert "its times are those of one load" in problem
