"""An archive from a stranger: nothing in it reaches beyond its folder, or crashes its reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.archive.reading import ServedOrigin, read_archive, split_url
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from wings.pages.har_export import write_archive
from wings.pages.tests.recordings import make_recording
from wings.pages.verify import verify_archive


@pytest.fixture
def page(tmp_path: Path) -> Path:
    write_archive(tmp_path / "mine", make_recording(), licence="none")
    return tmp_path / "mine"


def change(page: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = page / "page.har"
    har = json.loads(path.read_text())
    edit(har["log"])
    path.write_text(json.dumps(har))


def test_origins_and_hosts(page: Path) -> None:
    archive = read_archive(page)
    assert archive.origins == (ServedOrigin("https", "www.example.com", 443, True),
                               ServedOrigin("http", "img.example.com", 8080, False))  # fmt: skip
    assert archive.hosts == ("www.example.com", "img.example.com")
    assert archive.tls_hosts == ("www.example.com",)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "bodies/../page.toml",
                                  f"bodies/{'0' * 63}", f"bodies/{'0' * 64}/x",
                                  f"bodies/{'0' * 64}\n", f"bodies/{'A' * 64}", 7])  # fmt: skip
def test_bodies_are_in_their_folder(page: Path, name: object) -> None:
    change(page, lambda log: log["entries"][1].update(_body=name))
    with pytest.raises(ConfigurationError, match="not a page archive"):
        read_archive(page)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://a.test/", "https:///x", "https://../x",
        "https://a.test;return 200/", "https://user@a.test/", "https://a.test\\@b.test/",
        "https://[::1]/", "https://a.test:0/", "https://a.test:65536/", "https://a.test:+80/",
        "https://a.test:٨٠/", "https://a.test:/", "https://a.test#x", f"https://{'a' * 252}/",
    ],
)  # fmt: skip
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"is no|is an address|only http"):
        split_url(url)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://a.test", ("https", "a.test", 443, "/")),
        ("http://a.test?q=/", ("http", "a.test", 80, "/?q=/")),
        ("https://a.test:8443/a?b", ("https", "a.test", 8443, "/a?b")),
    ],
)
def test_urls(url: str, parts: tuple[str, str, int, str]) -> None:
    assert split_url(url) == parts


@pytest.mark.parametrize(
    "edit",
    [
        lambda log: log.update(entries=[]),
        lambda log: log.update(entries={}),
        lambda log: log.update(pages=[]),
        lambda log: log["entries"].append(3),
        lambda log: log["entries"][1].pop("_id"),
        lambda log: log["entries"][1].update(_id=["a"]),
        lambda log: log["entries"][1].update(_depth=-1),
        lambda log: log["entries"][1].update(_gap_ms="soon"),
        lambda log: log["entries"][1].update(_gap_ms=float("nan")),
        lambda log: log["entries"][1].update(_start_ms=float("nan")),
        lambda log: log["entries"][1].update(_dur_ms=float("inf")),
        lambda log: log["entries"][1].update(_parent=3),
        lambda log: log["entries"][1]["response"].update(bodySize="3"),
        lambda log: log["entries"][1]["response"].update(headersSize=None),
        lambda log: log["entries"][1]["response"].update(status=[]),
        lambda log: log["entries"][1]["response"].update(bodySize=1 << 70),
        lambda log: log["entries"][1]["response"].update(headers=[{"name": 3, "value": "x"}]),
        lambda log: log["entries"][1]["response"].update(headers=[{"name": "x", "value": {}}]),
        lambda log: log["entries"][1]["request"].update(url=None),
    ],
)
def test_a_har_of_another_shape(page: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    change(page, edit)
    with pytest.raises(ConfigurationError, match="not a page archive"):
        read_archive(page)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", "\xff"])
def test_a_har_that_is_no_json(page: Path, text: str) -> None:
    (page / "page.har").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match="not a page archive"):
        read_archive(page)


def test_a_har_that_is_too_large(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.archive.reading.LARGEST_HAR_BYTES", 100)
    with pytest.raises(ConfigurationError, match="larger than 100 bytes"):
        read_archive(page)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
          max_examples=150)  # fmt: skip
def test_whatever_a_field_holds(page: Path, data: st.DataObject) -> None:
    """A changed field is an error of the configuration or a problem that is told, never a crash."""
    original = (page / "page.har").read_text()

    def edit(log: dict[str, Any]) -> None:
        item = log["entries"][data.draw(st.integers(0, 3))]
        part = data.draw(st.sampled_from([item, item["request"], item["response"]]))
        part[data.draw(st.sampled_from(sorted(part)))] = data.draw(JSON)

    change(page, edit)
    try:
        verify_archive(page)
        build_page(page, page.parent / "cache")
    except ConfigurationError:
        pass
    finally:
        (page / "page.har").write_text(original)
    assert {path.name for path in page.parent.iterdir()} <= {"mine", "cache"}
