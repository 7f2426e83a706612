"""Flows of mitmproxy, of today's version and of its first ones."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Recording
from wings.pages.importing import mitmproxy
from wings.pages.importing.registry import read_recording
from wings.pages.tests.importing.site import ROOT, SITE, START, Sent


def packed(value: Any, *, text: bytes = b";") -> bytes:
    """A typed netstring; ``text`` is the type of names: bytes in mitmproxy's first versions."""
    if isinstance(value, dict):
        items = (packed(each, text=text) for pair in value.items() for each in pair)
        data, kind = b"".join(items), b"}"
    elif isinstance(value, list | tuple):
        data, kind = b"".join(packed(each, text=text) for each in value), b"]"
    elif value is None:
        data, kind = b"", b"~"
    elif isinstance(value, bool):
        data, kind = str(value).lower().encode(), b"!"
    elif isinstance(value, bytes):
        data, kind = value, b","
    elif isinstance(value, str):
        data, kind = value.encode(), text
    else:
        data, kind = str(value).encode(), b"#" if isinstance(value, int) else b"^"
    return b"%d:%s%s" % (len(data), data, kind)


def flow(sent: Sent) -> dict[str, Any]:
    scheme, _, rest = sent.url.partition("://")
    host, _, path = rest.partition("/")
    began = START.timestamp() + sent.start_ms / 1000
    asked = [
        [b"Host", host.encode()],
        *([[b"Referer", sent.initiator.encode()]] * bool(sent.initiator)),
    ]
    return {
        "websocket": None,
        "response": {
            "http_version": b"HTTP/2.0" if sent.protocol == "h2" else b"HTTP/1.1",
            "status_code": sent.status, "reason": b"OK", "content": sent.wire,
            "headers": [[name.encode(), value.encode()] for name, value in sent.headers],
            "timestamp_start": began + 0.02, "timestamp_end": began + 0.0405,
        },
        "request": {
            "host": "192.0.2.1", "port": 443 if scheme == "https" else 80, "method": b"GET",
            "scheme": scheme.encode(), "authority": b"", "path": f"/{path}".encode(),
            "http_version": b"HTTP/1.1", "headers": asked, "content": b"",
            "timestamp_start": began, "timestamp_end": began + 0.001,
        },
        "type": "http", "version": 21, "id": "1", "marked": "", "comment": "", "is_replay": None,
    }  # fmt: skip


def old(sent: Sent) -> dict[str, Any]:
    """As versions up to 0.17 wrote it."""
    whole = flow(sent)
    whole["version"] = [0, 13]
    response = whole["response"]
    response["code"], response["msg"] = response.pop("status_code"), response.pop("reason")
    response["httpversion"] = [1, 1]
    del response["http_version"], whole["request"]["http_version"], whole["request"]["authority"]
    return whole


def imported(folder: Path, data: bytes, **asked: str) -> Recording:
    path = folder / "flows"
    path.write_bytes(data)
    found = read_recording(path, **asked)
    assert isinstance(found, Recording)
    return found


@pytest.mark.parametrize("make", [flow, old])
def test_the_same_load_comes_out(make: Any, tmp_path: Path) -> None:
    text = b";" if make is flow else b","
    data = b"".join(packed(make(sent), text=text) for sent in SITE)
    found = imported(tmp_path, data)
    assert [(x.url, x.body, x.status) for x in found.exchanges] == [
        (sent.url, sent.wire, sent.status) for sent in SITE
    ]
    assert [x.start_ms for x in found.exchanges] == [
        pytest.approx(sent.start_ms, abs=0.01) for sent in SITE
    ]
    assert found.exchanges[2].initiator == ROOT
    if make is flow:
        assert [x.protocol for x in found.exchanges] == [sent.protocol for sent in SITE]


def test_what_is_no_answer_is_named(tmp_path: Path) -> None:
    failed = flow(SITE[3]) | {"response": None, "error": {"msg": "refused", "timestamp": 1.5}}
    data = b"".join(map(packed, (flow(SITE[1]), failed, {"type": "tcp", "messages": []})))
    notes = " ".join(imported(tmp_path, data).notes)
    assert "left out, without a response: 1" in notes
    assert "Flows left out, not of HTTP: 1 (tcp)" in notes


def test_one_file_of_flows_in_a_zip_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("page.mp", b"".join(packed(flow(sent)) for sent in SITE))
        archive.writestr("page.json", "{}")
    assert len(imported(tmp_path, out.getvalue()).exchanges) == len(SITE)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("other.mp", b"")
    with pytest.raises(ConfigurationError, match="2 files of flows in one zip"):
        imported(tmp_path, out.getvalue())


def test_damage_is_told_with_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(flow(SITE[1]))
    for cut in (50, len(data) // 2, len(data) - 1):
        with pytest.raises(ConfigurationError, match="ends too early"):
            imported(tmp_path, data + data[:cut])
    for wrong in (b"x" * 9, b"-1:a,", b"3:1:a"):
        with pytest.raises(ConfigurationError, match=f"byte {len(data)}"):
            imported(tmp_path, data + wrong)
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    with pytest.raises(ConfigurationError, match="no flow of mitmproxy at byte"):
        imported(tmp_path, data + packed({"type": deep}))
    monkeypatch.setattr(mitmproxy, "ARCHIVE_BYTES", 100)
    with pytest.raises(ConfigurationError, match="of flows; record one page"):
        imported(tmp_path, data)
