"""Requests that method and URL do not tell apart: each gets its own answer, or counts inexact."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.house import House, Plant, assert_bad, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

SITE = "https://www.shop.test"
SCRIPT = """<!doctype html><link rel=icon href=data:,><title>t</title><p>text<script>
const post = (url, body) => fetch(url, {method: 'POST', body});
post('/graphql', '{cart{id}}'); post('/graphql', '{user{id}}');
for (const range of ['bytes=50-', 'bytes=0-9']) fetch('/v', {headers: {range}});
for (let n = 0; n < 3; n++) fetch('/poll?q');
const form = new FormData(); form.append('a', '1'); post('/form', form);
post('/rum?t=' + performance.now(), JSON.stringify({page: 1, t: performance.now()}));
</script>"""
RULES = """
[[match]]
url = "https://www.shop.test/rum*"
ignore_query = ["t"]
ignore_fields = ["t"]
"""
MULTIPART = '--XyZ\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XyZ--\r\n'
BOUNDARY = {"content-type": "multipart/form-data; boundary=XyZ"}


def entry(path: str, text: str, ms: int, *, post: str = "", sent: dict[str, str] | None = None,
          status: int = 200, **headers: str) -> dict[str, Any]:  # fmt: skip
    """An entry of a HAR; ``sent`` and ``headers`` are what was sent each way."""
    sent = sent or {}
    request: dict[str, Any] = {
        "method": "POST" if post else "GET", "url": SITE + path, "httpVersion": "h2",
        "headers": [{"name": name, "value": value} for name, value in sent.items()],
        "headersSize": -1, "bodySize": len(post),
    }  # fmt: skip
    if post:
        request["postData"] = {"mimeType": sent.get("content-type", "text/plain"), "text": post}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = {"size": len(text), "mimeType": named.get("content-type", "text/plain"),
               "text": base64.b64encode(text.encode()).decode(), "encoding": "base64"}  # fmt: skip
    response = {
        "status": status, "statusText": "", "httpVersion": "h2", "content": content,
        "headers": [{"name": name, "value": value} for name, value in named.items()],
        "redirectURL": "", "headersSize": -1, "bodySize": len(text),
    }  # fmt: skip
    return {
        "startedDateTime": f"2026-05-01T10:00:00.{ms:03d}Z", "time": 20, "request": request,
        "response": response, "cache": {}, "timings": {"send": 0, "wait": 19, "receive": 1},
        "pageref": "p", "_initiator": {"type": "script", "url": f"{SITE}/"},
    }  # fmt: skip


def page(house: House, folder: Path, name: str, *entries: dict[str, Any], rules: str = "") -> None:
    """Import a page of these entries, with rules in its page.toml."""
    pages = [{"startedDateTime": entries[0]["startedDateTime"], "id": "p", "title": "t",
              "pageTimings": {"onLoad": 900}}]  # fmt: skip
    creator = {"name": "hand", "version": "1"}
    log = {"version": "1.2", "creator": creator, "pages": pages, "entries": entries}
    file = folder / f"{name}.har"
    file.write_text(json.dumps({"log": log}))
    house.import_page(file, name)
    with (house.pages / name / "page.toml").open("a") as facts:
        facts.write(rules)


HABITS = (
    entry("/", SCRIPT, 0, content_type="text/html"),
    entry("/graphql", "u" * 10, 25, post="{user{id}}"),
    entry("/graphql", "c" * 5011, 26, post="{cart{id}}"),
    entry("/v", "0" * 10, 27, sent={"range": "bytes=0-9"}, status=206,
          content_range="bytes 0-9/60"),
    entry("/v", "5" * 10, 28, sent={"range": "bytes=50-"}, status=206,
          content_range="bytes 50-59/60"),
    *(entry("/poll?q", "p" * (n + 1), 30 + n) for n in range(3)),
    entry("/form", "formed", 40, post=MULTIPART, sent=BOUNDARY),
    entry("/rum?t=61.5", "{}", 50, post='{"page":1,"t":61.5}',
          sent={"content-type": "text/plain;charset=UTF-8"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def house_of_habits(house: House, tmp_path_factory: pytest.TempPathFactory) -> House:
    folder = tmp_path_factory.mktemp("hars")
    page(house, folder, "habits", *HABITS)
    page(house, folder, "ruled", *HABITS, rules=RULES)
    return house


def test_each_request_gets_its_own_answer(house_of_habits: House) -> None:
    ran = house_of_habits.run(page=["habits", "ruled"], client="chromium")
    plain, ruled = ran.one(page="habits"), ran.one(page="ruled")
    assert_ok(plain)
    assert_ok(ruled)
    assert plain.replay is not None and ruled.replay is not None
    (inexact,) = plain.replay.inexact
    assert inexact.asked.startswith(f"POST {SITE}/rum?t=")
    assert inexact.answered == f"POST {SITE}/rum?t=61.5"
    assert (plain.replay.exact, plain.replay.missed) == (9, ())
    assert (ruled.replay.exact, ruled.replay.inexact) == (10, ())
    got = [(each["request"].get("postData", {}).get("text"), each["response"]["content"]["size"])
           for each in ran.har(plain) if each["request"]["url"].endswith("/graphql")]  # fmt: skip
    assert sorted(got) == [("{cart{id}}", 5011), ("{user{id}}", 10)]


def test_graph_says_which_it_stands_for(house_of_habits: House) -> None:
    (record,) = house_of_habits.run(page="habits", client="graph", protocol="h1").records
    assert_ok(record)
    assert record.replay is not None
    assert (record.replay.exact, record.replay.inexact) == (10, ())


@pytest.mark.nightly
def test_over_http3_as_well(house_of_habits: House) -> None:
    knobs = {"protocol": "h3", "web_server": "aioquic", "client": "chromium"}
    (record,) = house_of_habits.run(page="habits", **knobs).records
    assert_ok(record)
    assert record.replay is not None
    assert (record.replay.exact, len(record.replay.inexact)) == (9, 1)


def test_a_wrong_answer_given_as_exact_is_found(house_of_habits: House, plant: Plant) -> None:
    plant("server/choice.py", "found = due[min(number, len(due) - 1)]", "found = group[0]")
    (record,) = house_of_habits.run(page="habits", client="chromium").records
    assert_bad(record, "not its own recorded answer", "unproven")


@pytest.mark.nightly(but="^always")
@pytest.mark.parametrize(
    ("cache_control", "idle_s", "status"),
    [pytest.param("no-cache", 5, 304, id="always asked"),
     pytest.param("max-age=600", 500, None, id="still fresh"),
     pytest.param("max-age=600", 600, 304, id="stale")],
)  # fmt: skip
def test_a_second_visit_is_told_what_has_not_changed(
    house: House, tmp_path: Path, cache_control: str, idle_s: int, status: int | None
) -> None:
    document = (
        "<!doctype html><link rel=icon href=data:,><title>t</title><script src=/l.js></script>"
    )
    page(
        house, tmp_path, f"validated-{idle_s}", entry("/", document, 0, content_type="text/html"),
        entry("/l.js", "/*" + "x" * 60_000 + "*/", 30, content_type="text/javascript",
              etag='W/"abc"', cache_control=cache_control),
    )  # fmt: skip
    knobs = {"visits": 2, "between": "keep", "idle_s": idle_s}
    ran = house.run(page=f"validated-{idle_s}", client="chromium", **knobs)
    (record,) = ran.records
    assert_ok(record)
    assert record.replay is not None and record.replay.inexact == ()
    scripts = [each["response"] for each in ran.har(record)
               if each["request"]["url"].endswith("/l.js")]  # fmt: skip
    asked = [each["status"] for each in scripts if each["_transferSize"]]
    assert asked == ([status] if status else [])
    assert sum(each["_transferSize"] for each in scripts) < 500
