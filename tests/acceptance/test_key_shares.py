"""Key shares in real loads: the hello has what was asked for, and who was modified says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.model import CAPTURE_FILE, KEYS_FILE, Record
from tests.acceptance.house import House, Ran, assert_ok
from tests.acceptance.test_tls import PAGE, TABLE
from tests.measured import load_of

pytestmark = [pytest.mark.guest, pytest.mark.browser]

POST_QUANTUM_BYTES = 1184 + 32
"""A share of X25519MLKEM768: a key of ML-KEM-768 and one of X25519."""
SHARES = ["browser", "x25519"]
CLIENTS = ["chromium", "graph"]


@pytest.fixture(scope="module")
def ran(house: House, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    table = tmp_path_factory.mktemp("table") / "resources.csv"
    table.write_text(TABLE)
    house.import_page(table, PAGE, "--title", "Small", "--url", "https://www.small.test/")
    return house.run(page=PAGE, client=CLIENTS, protocol="h1", key_share=SHARES, rtt_ms=100)


def of(ran: Ran, client: str, share: str) -> Record:
    (record,) = (
        record
        for record in ran.records
        if (record.trial.client, record.trial.opening.key_share) == (client, share)
    )
    assert_ok(record)
    return record


def hello_bytes(record: Record) -> float:
    assert record.proof is not None
    return record.proof.hello_bytes / record.proof.tls_connections


@pytest.mark.parametrize("client", CLIENTS)
def test_hellos_have_the_asked_shares(ran: Ran, client: str) -> None:
    usual, small = (hello_bytes(of(ran, client, share)) for share in SHARES)
    assert small < 700 < POST_QUANTUM_BYTES < usual


def test_only_a_modified_browser_says_so(ran: Ran) -> None:
    versions = {
        (client, share): load_of(of(ran, client, share)).client_version
        for client in CLIENTS
        for share in SHARES
    }
    plain = versions["chromium", "browser"]
    assert "modified" not in plain
    assert versions["chromium", "x25519"] == (
        f"{plain} (modified: sends no post-quantum key share)"
    )
    assert versions["graph", "x25519"] == versions["graph", "browser"]
    assert "modified chromium HeadlessChrome/" in " ".join(ran.said.split())


@pytest.mark.parametrize("client", CLIENTS)
def test_secrets_are_kept_beside_the_capture_they_open(ran: Ran, client: str) -> None:
    """Of each hello in the capture, by its random number, which stands in both."""
    kept = {share: ran.folder / "trials" / of(ran, client, share).trial_id for share in SHARES}
    assert not (kept["browser"] / KEYS_FILE).exists()
    known = (kept["x25519"] / KEYS_FILE).read_text("ascii").splitlines()
    randoms = {line.split()[1] for line in known if line.startswith("CLIENT_TRAFFIC_SECRET_0 ")}
    capture = Path(kept["x25519"] / CAPTURE_FILE).read_bytes()
    proof = of(ran, client, "x25519").proof
    assert proof is not None
    assert len(randoms) == proof.tls_connections
    assert all(bytes.fromhex(random) in capture for random in randoms)
    assert KEYS_FILE in of(ran, client, "x25519").artefacts
