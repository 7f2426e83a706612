"""Faults planted in what serves a load: each printed a number once, none may pass as proven."""

from __future__ import annotations

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import PageLoad
from tests.acceptance.house import House, Plant, assert_refused
from tests.measured import load_of

pytestmark = pytest.mark.guest

PAGE, SEVERAL_HOSTS = "tum-website", "wikipedia"
KNOBS = {"page": PAGE, "client": "graph", "rtt_ms": 20}
NO_LIMIT = "no limit on requests per connection was asked, but the server ended "
SERVED_PATH = "path = str(entry.body.absolute())"
"""Where the server's configuration names the file of a body."""


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE, SEVERAL_HOSTS)


@pytest.mark.nightly(but="by itself-True")
@pytest.mark.parametrize("tfo", [False, True])
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("keepalive_timeout {kept_alive_s}s;", "keepalive_timeout 0;", "after 1 requests"),
        ("NO_LIMIT = 1_000_000", "NO_LIMIT = 2", "after 2 requests"),
        # Nothing in a response tells of this one.
        ("keepalive_timeout {kept_alive_s}s;", "keepalive_timeout 5ms;", " by itself"),
    ],
)
def test_connections_that_the_server_does_not_keep(
    house: House, plant: Plant, old: str, new: str, told: str, tfo: bool
) -> None:
    plant("server/nginx.py", old, new)
    assert_refused(house.run(**KNOBS, tfo=tfo), "unproven", NO_LIMIT, told)


def test_connections_that_end_before_their_limit(house: House, plant: Plant) -> None:
    plant("server/nginx.py", "else terms.keepalive_requests", "else terms.keepalive_requests - 1")
    ran = house.run(**KNOBS, requests_per_connection=3)
    assert_refused(
        ran, "unproven", "requests_per_connection = 3, but the server ended ", "after 2 requests"
    )


def test_a_head_that_asks_to_close(house: House, plant: Plant) -> None:
    """The server would keep the connection; the client does as it is told."""
    plant("server/blocks.py", '"types { }",', "\"types { }\", 'add_header Connection close;',")
    assert_refused(house.run(**KNOBS), "unproven", "response heads were not sent as recorded")


@pytest.mark.nightly(but="^one-graph$")
@pytest.mark.parametrize("client", ["graph", "wget2", "chromium"])
@pytest.mark.parametrize(
    ("which", "size", "told"),
    [("answer", "len(data) - len(data) // 100", "6 bodies were not sent as recorded"),
     ("answer == 3", "len(data) // 2", "1 bodies were not sent as recorded")],
    ids=["all", "one"],
)  # fmt: skip
def test_shorter_bodies(
    house: House, plant: Plant, client: str, which: str, size: str, told: str
) -> None:
    plant("server/blocks.py", SERVED_PATH, _served(f"data[: {size}]", which))
    assert_refused(house.run(**KNOBS | {"client": client}), "unproven", told, "instead of")


def test_one_body_of_the_right_length_with_other_bytes(house: House, plant: Plant) -> None:
    plant("server/blocks.py", SERVED_PATH, _served("bytes(len(data))", "answer == 1"))
    assert_refused(house.run(**KNOBS), "unproven", "1 bodies were not received as recorded")


def _served(content: str, condition: str) -> str:
    """Code that serves ``content``, made of the body's ``data``, where ``condition`` holds."""
    return (
        "data = entry.body.read_bytes(); from pathlib import Path; "
        "planted = Path('/tmp') / entry.body.name; "
        f"planted.write_bytes({content} if {condition} else data); path = str(planted)"
    )


@pytest.mark.nightly(but="graph")
@pytest.mark.parametrize("client", ["graph", "wget2", "chromium"])
def test_names_from_a_file(house: House, plant: Plant, client: str) -> None:
    """All but one, so that there is a question on the link."""
    old = 'if mode == "hosts":'
    all_but_one = (
        'with (ETC_NETNS / client.name / "hosts").open("a") as hosts:\n            '
        'hosts.writelines(f"{a} {host}\\n" for host, (a,) in list(addresses.items())[1:])\n        '
    )
    plant("server/resolver.py", old, all_but_one + old)
    ran = house.run(**KNOBS | {"page": SEVERAL_HOSTS, "client": client})
    assert_refused(ran, "unproven", "hosts were gone to without a question on the link: ")


@pytest.mark.nightly(but="^graph-2$")
@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("client", ["graph", "wget2"])
def test_limits_that_are_kept_are_proven(house: House, page: None, client: str, limit: int) -> None:
    knobs = {**KNOBS, "client": client, "tfo": [False, True], "loss_pct": [0.0, 2.0]}
    ran = house.run(**knobs, requests_per_connection=limit)
    assert ran.code == EXIT_OK, [record.reason for record in ran.records]


def test_a_page_that_was_cut_in_the_cache_heals_itself(
    house: House, page: None, caplog: pytest.LogCaptureFixture
) -> None:
    first = house.run(**KNOBS)
    caplog.set_level("INFO", "testbed")
    bodies = [*(house.cache / "pages").glob(f"{PAGE}-*/bodies/*")]  # of whichever builds there are
    assert bodies
    for body in bodies:
        body.write_bytes(body.read_bytes()[: body.stat().st_size // 2])
    second = house.run(**KNOBS)
    assert (first.code, second.code) == (EXIT_OK, EXIT_OK)
    one, other = first.records[0], second.records[0]
    assert other.measured_as(PageLoad) is not None
    assert (load_of(one).plt_ms, one.artefacts) == (load_of(other).plt_ms, other.artefacts)
