"""Archives of Web Page Replay: gzip JSON of messages in HTTP/1.1 form."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Recording
from wings.pages.importing.registry import read_recording
from wings.pages.tests.importing.site import ROOT, SITE, Sent

OTHER = Sent("https://www.site.example/two", "text/html", b"<img src=//cdn.site.example/named.png>",
             document=True)  # fmt: skip
LIMITED = "https://gone.example/"


def message(line: str, headers: list[tuple[str, str]], body: bytes = b"") -> str:
    head = "\r\n".join([line, *(f"{name}: {value}" for name, value in headers), "", ""])
    return b64encode(head.encode() + body).decode()


def archived(sent: Sent, *, chunked: bool = False) -> dict[str, Any]:
    asked = [("Host", "x"), *([("Referer", sent.initiator)] if sent.initiator else [])]
    asked += [("Sec-Fetch-Dest", "document")] if sent.document else []
    body, framing = sent.wire, ("Content-Length", str(len(sent.wire)))
    if chunked:
        framing = ("Transfer-Encoding", "chunked")
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    return {
        "SerializedRequest": message("GET / HTTP/1.1", asked),
        "SerializedResponse": message(
            f"HTTP/1.1 {sent.status} OK", [*sent.headers, framing], body
        ),
        "LastServedSessionId": 0,
    }  # fmt: skip


def make(site: tuple[Sent, ...], *, packed: bool = True, chunked: bool = False) -> bytes:
    requests: dict[str, dict[str, list[Any]]] = {}
    for sent in sorted(site, key=lambda each: each.url):  # as Go writes maps
        by_url = requests.setdefault(sent.url.split("/")[2], {})
        by_url.setdefault(sent.url, []).append(archived(sent, chunked=chunked))
    hosts = {host: "h2" for host in requests if host.startswith("www")}
    data = json.dumps({"Requests": requests, "Certs": {"x": "AA=="}, "NegotiatedProtocol": hosts})
    return gzip.compress(data.encode()) if packed else data.encode()


def imported(folder: Path, data: bytes, **asked: str) -> Recording:
    path = folder / "x.wprgo"
    path.write_bytes(data)
    found = read_recording(path, **asked)
    assert isinstance(found, Recording)
    return found


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
def test_the_page_and_what_it_led_to(packed: bool, chunked: bool, tmp_path: Path) -> None:
    found = imported(tmp_path, make(SITE, packed=packed, chunked=chunked))
    assert found.url == SITE[0].url
    assert {x.url: x.body for x in found.exchanges} == {sent.url: sent.wire for sent in SITE}
    assert found.exchanges[1].url == ROOT and found.exchanges[1].protocol == "h2"
    assert {x.initiator for x in found.exchanges[2:5]} == {ROOT}


def test_of_several_pages_one_is_read(tmp_path: Path) -> None:
    named = Sent("https://cdn.site.example/named.png", "image/png", b"1", initiator=LIMITED)
    stray = Sent("https://cdn.site.example/stray.png", "image/png", b"2", initiator=LIMITED)
    data = make((*SITE, OTHER, named, stray))
    first = imported(tmp_path, data, url=ROOT)
    assert {x.url for x in first.exchanges} == {sent.url for sent in SITE[1:]}
    assert any("of other pages" in note for note in first.notes)
    second = imported(tmp_path, data, url=OTHER.url)
    assert [x.url for x in second.exchanges] == [OTHER.url, named.url]


def test_what_was_recorded_twice_is_there_once(tmp_path: Path) -> None:
    changed = Sent(SITE[6].url, "application/json", b"[2]", initiator=SITE[6].initiator)
    found = imported(tmp_path, make((*SITE, *SITE, changed)))
    answers = [x.body for x in found.exchanges if x.url == changed.url]
    assert len(found.exchanges) == len(SITE) + 1 and len(set(answers)) == 2


def test_a_request_that_failed_is_named(tmp_path: Path) -> None:
    document = json.loads(make(SITE, packed=False))
    items = document["Requests"]["cdn.site.example"]["https://cdn.site.example/app.js"]
    items[0]["SerializedResponse"] = ""
    found = imported(tmp_path, json.dumps(document).encode())
    assert any("without a whole request and response: 1" in note for note in found.notes)
    with pytest.raises(ConfigurationError, match="no response in this Web Page Replay"):
        imported(tmp_path, b'{"Requests": {}, "Certs": {}}')
