"""HARs in the manner of thirteen further tools: the same page comes out, and it is whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from testbed.errors import ConfigurationError
from testbed.page.build import build_page
from testbed.page.coding import decode
from testbed.page.importing.reading import read_recording
from testbed.page.importing.writing import Manner, write_page
from testbed.page.recording import Recording
from testbed.page.verify import verify_archive
from tests.page.importing import producers
from tests.page.importing.producers import FURTHER, KNOWN, Producer
from tests.page.importing.site import ROOT, SITE

BODILESS = (producers.phantomjs,)
UNORDERED = (producers.insomnia, producers.burp)


def imported(data: bytes, folder: Path) -> Recording:
    """The recording of ``data``; the page that is made of it, without secrets, is whole."""
    path = folder / "load.har"
    path.write_bytes(data)
    found = read_recording(path)
    assert isinstance(found, Recording)
    write_page(folder / "page", found, Manner())
    assert verify_archive(build_page(folder / "page", folder / "cache")) == []
    return found


@pytest.mark.parametrize("bodies", [True, False])
@pytest.mark.parametrize("producer", FURTHER)
def test_the_same_requests_come_out(producer: Producer, bodies: bool, tmp_path: Path) -> None:
    found = imported(json.dumps(producer(bodies=bodies)).encode(), tmp_path)
    expected = [sent for sent in SITE if producer is not producers.insomnia or sent.status == 200]
    by_url = {exchange.url: exchange for exchange in found.exchanges if exchange.method == "GET"}
    assert list(by_url) == [sent.url for sent in expected]
    extra = [exchange for exchange in found.exchanges if exchange.method != "GET"]
    assert len(extra) == (producer is producers.chrome_today)
    assert found.recorded.isoformat() == "2024-05-06" or producer is producers.burp
    for sent in expected:
        exchange = by_url[sent.url]
        assert exchange.status == sent.status
        if bodies and producer not in BODILESS and sent.is_text:
            coding = dict(exchange.headers).get("content-encoding", "")
            assert decode(exchange.body or b"", coding, 1 << 20) == sent.content


@pytest.mark.parametrize("producer", [producers.charles, producers.zap, producers.burp])
def test_what_counted_the_body_gets_it_in_its_size(producer: Producer, tmp_path: Path) -> None:
    found = imported(json.dumps(producer()).encode(), tmp_path)
    sizes = {exchange.url: exchange.body_size for exchange in found.exchanges}
    assert sizes == {sent.url: len(sent.wire) for sent in SITE}


@pytest.mark.parametrize("producer", (*KNOWN, *FURTHER))
@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-16-be", "gzip"])
def test_any_file_a_tool_may_make_of_it(producer: Producer, coding: str, tmp_path: Path) -> None:
    text = json.dumps(producer(), ensure_ascii=False)
    mark = b"\xfe\xff" if coding == "utf-16-be" else b""
    data = gzip.compress(text.encode()) if coding == "gzip" else mark + text.encode(coding)
    found = imported(data, tmp_path)
    assert ROOT in [exchange.url for exchange in found.exchanges]


@pytest.mark.parametrize("joint", ["\n", "", "\x00", ","])
def test_two_hars_in_one_file_are_told(joint: str, tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_text(joint.join([json.dumps(producers.charles())] * 2))
    with pytest.raises(ConfigurationError, match="the HAR has ended, but the file goes on"):
        read_recording(path)


def test_base64_with_line_breaks_or_without_padding_is_base64(tmp_path: Path) -> None:
    document = producers.charles()
    content = document["log"]["entries"][5]["response"]["content"]
    text = content["text"].rstrip("=")
    content["text"] = "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    found = imported(json.dumps(document).encode(), tmp_path)
    assert found.exchanges[5].body == SITE[5].content


def test_upgrades_and_failures_are_told_apart(tmp_path: Path) -> None:
    notes = imported(json.dumps(producers.http_toolkit()).encode(), tmp_path).notes
    assert any("left out, switched to another protocol: 1" in note for note in notes)
    assert any("left out, without a response: 1" in note for note in notes)
