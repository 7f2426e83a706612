"""TLS, HTTP/2 and key shares: what was asked for is on the wire, and twice the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.base.errors import EXIT_MISSING, EXIT_OK
from testbed.model import CAPTURE_FILE, HAR_FILE, KEYS_FILE, Condition, Proof, Record
from tests.acceptance.house import House, Ran, assert_exact, assert_ok
from tests.measured import load_of

pytestmark = [pytest.mark.guest, pytest.mark.browser]

# Two hosts over HTTP/2 and one over HTTP/1.1, all TLS.
TABLE = """\
id,parent,host,mime,status,transfer_bytes,body_bytes,how,gap_ms,start_ms,dur_ms,protocol
0,,www.small.test,text/html,200,4000,9000,root,,0,40,h2
1,0,www.small.test,text/css,200,3000,9000,url-in-main-html,5,45,30,h2
2,0,static.small.test,image/png,200,6000,5520,url-in-main-html,6,46,30,h2
3,1,static.small.test,image/png,200,2000,1520,url-in-css,1,76,30,h2
4,0,old.small.test,image/png,200,2500,2020,url-in-main-html,7,47,30,https
5,0,old.small.test,image/gif,200,900,420,url-in-main-html,8,48,30,https
"""
PAGE = "small"
REQUESTS = 2  # to each host
SPOKEN = {"h2": "HTTP/2.0", "http/1.1": "HTTP/1.1"}
PROTOCOLS, VERSIONS, TFO = ["as-recorded", "h1", "h2"], ["1.2", "1.3"], [False, True]
RTT_MS = 200.0
COMBINATIONS = [(p, v, t) for p in PROTOCOLS for v in VERSIONS for t in TFO]
# RFC 7413 section 4.2.2: a SYN holds what is left of the MTU of 1500 by headers and options.
SYN_PAYLOAD, BROWSER_HELLO = 1420, 1500


@pytest.fixture(scope="module")
def page(house: House) -> str:
    return house.import_table(TABLE, PAGE, "https://www.small.test/")


Load = Callable[[str], Ran]


@pytest.fixture(scope="module")
def load(house: House, page: str) -> Load:
    """Loads the page over a protocol in all other combinations, once for all tests."""
    knobs = {"page": page, "tls_version": VERSIONS, "tfo": TFO, "rtt_ms": RTT_MS}
    return functools.cache(lambda protocol: house.run(protocol=protocol, **knobs))


def proof_of(record: Record) -> Proof:
    assert record.proof is not None
    return record.proof


@pytest.mark.nightly(but="^(as-recorded|h2)-")
@pytest.mark.parametrize(("protocol", "version", "tfo"), COMBINATIONS)
def test_what_was_asked_for_happened(
    house: House, load: Load, protocol: str, version: str, tfo: bool
) -> None:
    record = load(protocol).one(protocol=protocol, tls_version=version, tfo=tfo)
    assert_exact(record, house.archive(PAGE))
    everywhere = {"h1": "http/1.1", "h2": "h2"}
    expected = {
        f"https://{e.host} {SPOKEN[everywhere.get(protocol, e.protocol)]}": REQUESTS
        for e in house.archive(PAGE).entries
    }
    assert len(expected) == 3
    assert record.replay is not None
    assert record.replay.protocols == expected
    proof = proof_of(record)
    assert proof.tls_connections == proof.connections >= len(expected)
    assert proof.syns_with_payload == (proof.connections if tfo else 0)


@pytest.mark.nightly(but="^(as-recorded|h2)-")
@pytest.mark.parametrize(("protocol", "version", "tfo"), COMBINATIONS)
def test_how_much_of_the_hello_rode_in_the_syn(
    load: Load, protocol: str, version: str, tfo: bool
) -> None:
    proof = proof_of(load(protocol).one(protocol=protocol, tls_version=version, tfo=tfo))
    assert proof.hello_bytes > BROWSER_HELLO * proof.tls_connections
    assert proof.syn_hello_bytes == proof.syn_payload_bytes
    assert proof.syn_hello_bytes == (SYN_PAYLOAD * proof.connections if tfo else 0)


def test_another_boot_gives_the_same_bytes(house: House, load: Load) -> None:
    again = house.run(page=PAGE, protocol=["as-recorded", "h2"], tfo=True, rtt_ms=RTT_MS)
    assert len(again.records) == 2
    for second in again.records:
        ran = load(second.trial.condition_as(Condition).protocol)
        (first,) = (r for r in ran.records if r.trial_id == second.trial_id)
        for name in (CAPTURE_FILE, HAR_FILE):
            files = [Path(r.folder, "trials", first.trial_id, name) for r in (ran, again)]
            assert files[0].read_bytes() == files[1].read_bytes()
        assert (load_of(first), first.replay, first.proof) == (
            load_of(second), second.replay, second.proof,
        )  # fmt: skip


def test_graph_speaks_http_1_only(house: House, page: str) -> None:
    ran = house.run(page=page, client="graph", protocol=["h1", "h2"], tls_version=VERSIONS,
                    tfo=[False, True], rtt_ms=RTT_MS)  # fmt: skip
    assert ran.code == EXIT_MISSING
    took_ms = {}
    for version in VERSIONS:
        took_ms[version] = load_of(ran.one(protocol="h1", tls_version=version, tfo=False)).plt_ms
        record = ran.one(protocol="h1", tls_version=version, tfo=True)
        assert_exact(record, house.archive(PAGE))
        proof = proof_of(record)
        assert 0 < proof.syn_hello_bytes <= proof.hello_bytes
        # Half a kilobyte fits; with a post-quantum key share (OpenSSL 3.5) it is three times that.
        assert (proof.syn_hello_bytes == proof.hello_bytes) == (version == "1.2")
        refused = ran.one(protocol="h2", tls_version=version, tfo=True)
        assert refused.outcome == "unsupported"
        assert refused.reason is not None and "protocol = h1" in refused.reason
    # Two handshakes follow each other, and RFC 8446 spares each a round trip; its hellos are
    # larger, which costs less than one.
    assert 1 < (took_ms["1.2"] - took_ms["1.3"]) / RTT_MS <= 2


def test_the_command_line_chooses_the_protocol(house: House, page: str) -> None:
    config = house.folder / "one.toml"
    config.write_text(f'title = "One"\npage = "{page}"\nclient = "graph"\n')
    code, said = house.command("run", str(config), "--protocol", "h1")
    assert code == EXIT_OK, said


POST_QUANTUM_BYTES = 1184 + 32
"""A share of X25519MLKEM768: a key of ML-KEM-768 and one of X25519."""
SHARES = ["browser", "x25519"]
CLIENTS = ["chromium", "graph"]


@pytest.fixture(scope="module")
def shares(house: House, page: str) -> Ran:
    return house.run(page=page, client=CLIENTS, protocol="h1", key_share=SHARES, rtt_ms=100)


def of(shares: Ran, client: str, share: str) -> Record:
    (record,) = (
        record
        for record in shares.records
        if (record.trial.client, record.trial.opening.key_share) == (client, share)
    )
    assert_ok(record)
    return record


def hello_bytes(record: Record) -> float:
    return proof_of(record).hello_bytes / proof_of(record).tls_connections


@pytest.mark.parametrize("client", CLIENTS)
def test_hellos_have_the_asked_shares(shares: Ran, client: str) -> None:
    usual, small = (hello_bytes(of(shares, client, share)) for share in SHARES)
    assert small < 700 < POST_QUANTUM_BYTES < usual


def test_only_a_modified_browser_says_so(shares: Ran) -> None:
    versions = {
        (client, share): load_of(of(shares, client, share)).client_version
        for client in CLIENTS
        for share in SHARES
    }
    plain = versions["chromium", "browser"]
    assert "modified" not in plain
    assert versions["chromium", "x25519"] == (
        f"{plain} (modified: sends no post-quantum key share)"
    )
    assert versions["graph", "x25519"] == versions["graph", "browser"]
    assert "modified chromium HeadlessChrome/" in " ".join(shares.said.split())


@pytest.mark.parametrize("client", CLIENTS)
def test_secrets_are_kept_beside_the_capture_they_open(shares: Ran, client: str) -> None:
    """Of each hello in the capture, by its random number, which stands in both."""
    kept = {
        share: shares.folder / "trials" / of(shares, client, share).trial_id for share in SHARES
    }
    for share, folder in kept.items():
        known = (folder / KEYS_FILE).read_text("ascii").splitlines()
        randoms = {line.split()[1] for line in known if line.startswith("CLIENT_TRAFFIC_SECRET_0 ")}
        capture = (folder / CAPTURE_FILE).read_bytes()
        assert len(randoms) == proof_of(of(shares, client, share)).tls_connections
        assert all(bytes.fromhex(random) in capture for random in randoms)
        assert KEYS_FILE in of(shares, client, share).artefacts
