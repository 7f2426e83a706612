"""Whatever a file holds: a clear error, or a page that is whole and stays in its folder."""

from __future__ import annotations

import copy
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.archive.head import header_problem, request_problem
from testbed.archive.reading import Archive, read_archive
from testbed.base.errors import ConfigurationError
from testbed.server.listeners import lab_listeners
from testbed.server.nginx import ServerOptions, configuration
from tests.server.test_nginx import tokens
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.table import read_table
from wings.pages.tests.importing.mutations import members
from wings.pages.tests.importing.site import SITE, browsertime, devtools, firefox, webpagetest
from wings.pages.tests.importing.test_crawl import CRAWL, PAGES, warc
from wings.pages.tests.importing.test_mahimahi import record
from wings.pages.tests.importing.test_mitmproxy import flow, packed
from wings.pages.tests.importing.test_warc import make_wacz, make_warc
from wings.pages.tests.importing.test_wpr import make
from wings.pages.verify import verify_archive

HARS = tuple(producer(SITE, bodies=True) for producer in (devtools, firefox, browsertime,
                                                          webpagetest))  # fmt: skip
HOSTILE = st.sampled_from(
    [
        "../../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "C:\\x", "a/../..",
        "https://x.example;}server{/", 'https://x.example/";}', "https://x.example/$host${a}",
        "https://x.example/\r\nHost: y", "https://x.example/\x00", "http://x.example:443/",
        "https://X.EXAMPLE:443/%", "https://www.site.example/../../x", "https://www.site.example",
        "https://u:p@www.site.example/#x", "//www.site.example/", "https://[::1]:8/", "data:,",
        "https://xn--.example/", "https://\ud800.example/", "\u2028", "\x1b[2J", "{{7*7}}", "%n%s",
        "a" * 5000, "https://a.example/" + "é" * 2000, "HTTP/3", "gzip, br", "br", "zstd",
        "gzip, gzip, gzip", "base64", "deflate", "POST", "TRACE", "", " ",
        "text/html; charset=utf-7",
        "9" * 400, "-1", "\\", "'", '"', "https://prime/", "text/css",
        "image/png", "image/svg+xml",
    ]
)  # fmt: skip
SCALARS = st.one_of(
    HOSTILE, st.text(max_size=30), st.none(), st.booleans(),
    st.sampled_from([0, -1, 1, 204, 206, 301, 302, 304, 404, 999, 2**31, 10**30, 1e308, 0.5]),
    st.floats(),
    st.integers(-5, 100_000),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
FEW = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    found = [path] if path else []
    for key, inner in members(value):
        found += places(inner, (*path, key))
    return found


CHANGES = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), max_size=4)
PLACES = tuple(tuple(places(document)) for document in HARS)
OWN = ("_full_url", "_fromCache", "_initiator", "_objectSize", "_resourceType", "_bytesIn")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A producer's HAR in which a few values, wherever they are, are others."""
    index = draw(st.integers(0, len(HARS) - 1))
    document = copy.deepcopy(HARS[index])
    for _ in range(draw(st.integers(1, 6))):
        path = draw(st.sampled_from(PLACES[index]))
        owner: Any = document
        try:
            for key in path[:-1]:
                owner = owner[key]
            if draw(st.booleans()):
                owner[path[-1]] = draw(VALUES)
            elif isinstance(owner, dict):
                owner[draw(st.sampled_from([*owner, *OWN]))] = draw(VALUES)
            elif owner:
                owner.append(copy.deepcopy(draw(st.sampled_from(owner))))
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier change has taken the place away
    return json.dumps(document).encode("utf-8", "surrogatepass")


def check(data: bytes, *, folder: bool = False) -> None:
    """Import ``data`` and look at everything that came of it."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        source, pages = top / "file", top / "pages"
        pages.mkdir()
        if folder:
            source.mkdir()
            (source / "save.1").write_bytes(data)
        else:
            source.write_bytes(data)
        try:
            found = read_recording(source)
            kind = write_page(pages / "page", found, WriteOptions(keep_secrets=True)).kind
        except ConfigurationError as error:
            assert error.problems
            assert all(problem.strip() for problem in error.problems)
            assert list(pages.iterdir()) == []
            return
        finally:
            assert sorted(path.name for path in top.iterdir()) == ["file", "pages"]
        assert [path.name for path in pages.iterdir()] == ["page"]
        assert all(not path.is_symlink() for path in pages.rglob("*"))
        if kind == "table":
            read_table(pages / "page" / "resources.csv")
        else:
            assert verify_archive(pages / "page") == []
            check_sound(read_archive(pages / "page"), top / "tls")


def check_sound(archive: Archive, tls: Path) -> None:
    """The server takes it, and nothing reaches nginx that it would read as something else."""
    hosts = {host: (f"10.0.0.{n}",) for n, host in enumerate(archive.hosts, 1)}
    tls.mkdir()
    for host in hosts:
        (tls / f"{host}.pem").touch()
    text = configuration(archive, lab_listeners(archive, hosts, "h1"), ServerOptions(tls=tls))
    text.encode("latin-1")
    assert tokens(text).count("{") == tokens(text).count("}")
    for entry in archive.entries:
        assert request_problem(entry.method, entry.host, entry.path) is None
        for header in entry.headers:
            assert header_problem(*header) is None
            assert not set("\r\n\0") & set("".join(header))


@FEW
@given(mutated())
def test_changed_hars(data: bytes) -> None:
    check(data)


@FEW
@given(st.data())
def test_hostile_text_in_every_field(data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(HARS) - 1))
    document = copy.deepcopy(HARS[index])
    name = data.draw(
        st.sampled_from(["url", "value", "name", "text", "mimeType", "method", "redirectURL",
                         "encoding", "title", "startedDateTime", "httpVersion", "_initiator"])
    )  # fmt: skip
    for path in PLACES[index]:
        if path[-1] == name and data.draw(st.booleans()):
            owner: Any = document
            for key in path[:-1]:
                owner = owner[key]
            owner[name] = data.draw(HOSTILE)
    check(json.dumps(document).encode())


@FEW
@given(st.sampled_from([b"", b"{", b"\xef\xbb\xbf{", b"WARC/1.0\r\n", b"PK\x03\x04", b"\x1f\x8b"]),
       st.binary(max_size=200))  # fmt: skip
def test_raw_bytes(start: bytes, rest: bytes) -> None:
    check(start + rest)


WHOLE = (json.dumps(HARS[0]).encode(), gzip.compress(json.dumps(HARS[1]).encode()), make_warc(),
         make_warc(packed=False), make_wacz({"archive/a.warc.gz": make_warc()}, []),
         warc(*CRAWL), make_wacz({"archive/a.warc": make_warc(packed=False)}, PAGES),
         b"".join(packed(flow(sent)) for sent in SITE), make(SITE, packed=False))  # fmt: skip


def damaged(data: bytes, changes: list[tuple[float, bytes]]) -> bytes:
    out = bytearray(data)
    for place, new in changes:
        at = int(place * len(out))
        out[at : at + len(new)] = new
    return bytes(out)


@FEW
@given(st.sampled_from(WHOLE), CHANGES, st.floats(0.5, 1.0))
def test_damaged_files(data: bytes, changes: list[tuple[float, bytes]], kept: float) -> None:
    changed = damaged(data, changes)
    check(changed[: int(kept * len(changed)) + 1])


@FEW
@given(st.sampled_from(SITE), CHANGES)
def test_damaged_record_folders(sent: Any, changes: list[tuple[float, bytes]]) -> None:
    check(damaged(record(sent), changes), folder=True)
