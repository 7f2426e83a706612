"""The corners of HTTP, recorded from a server of which every byte is known, and replayed.

A script looks at each response (status, bytes, headers) and asks for a URL made of what it saw:
replayed, it asks for the same one only if every response is the same to a page.
"""

from __future__ import annotations

import gzip
import json

import pytest

from tests.acceptance.house import House, Ran, assert_exact
from tests.measured import load_of
from tests.web import make_context
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed, zipped

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW, OTHER, SECURE = "http://www.site.test", "http://other.site.test", "https://secure.site.test"
PORT = "http://www.site.test:8080"
ODD = "cost $5, ${uri} $host \"quoted\" 'single' back\\slash {brace}; #"
LONG_VALUE = "v" * 7000 + '$"'
LONG_PATH = "/long/" + "p" * 1500 + "?q=" + "%22$" * 450
ASKED = [
    ("GET", "/odd.txt", 0), ("GET", "/latin.txt", 0), ("GET", "/zipped.txt", 0),
    ("GET", LONG_PATH, 0),
    ("POST", "/form", 5), ("POST", "/form", 9), ("POST", "/form", 0), ("PUT", "/form", 5),
    ("HEAD", "/odd.txt", 0), ("HEAD", "/head-only", 0),
    ("GET", "/gone.txt", 0), ("GET", "/error", 0), ("GET", "/nothing", 0), ("GET", "/hop", 0),
    ("GET", f"{PORT}/port.txt", 0), ("GET", f"{SECURE}:8443/port.txt", 0),
    ("GET", f"{SECURE}/plain.txt", 0),
]  # fmt: skip
SHOWN = ["Content-Length", "Content-Type", "X-Odd", "X-Long", "X-Twice", "X-Latin"]
PAGE = f"""<!doctype html><html><head><title>Corners</title>
<style>@font-face {{ font-family: f; src: url({OTHER}/font.woff2); }}
p {{ font-family: f; }}</style></head><body><p>text</p><script>
const sum = (text) => {{
  let total = 0;
  for (let i = 0; i < text.length; i += 1) {{
    total = (Math.imul(total, 31) + (text.charCodeAt(i) & 255)) >>> 0;
  }}
  return total;
}};
const seen = [];
for (const [method, url, size] of {json.dumps(ASKED)}) {{
  const asked = new XMLHttpRequest();
  asked.open(method, url, false); // waits, and the load event with it
  asked.overrideMimeType('text/plain; charset=x-user-defined');
  asked.send('b'.repeat(size) || null);
  const text = asked.responseText;
  // The server knows no length of a body that was never sent.
  const names = {json.dumps(SHOWN)}.slice(method === 'HEAD' ? 1 : 0);
  const headers = names.map((name) => asked.getResponseHeader(name) ?? '');
  seen.push([asked.status, text.length, sum(text), sum(headers.join('|'))].join('-'));
}}
const digest = seen.join('_');
document.write(`<img src="/seen/${{digest}}.png">`);
</script></body></html>
"""


def look(method: str, answer: Answer) -> str:
    """What the script makes of ``answer``."""
    body = b"" if method == "HEAD" else contents(answer)
    lines = [(name.lower(), value) for name, value in answer.lines()]
    names = SHOWN[1 if method == "HEAD" else 0 :]
    values = [", ".join(v for n, v in lines if n == name.lower()) for name in names]
    head = "|".join(values).encode("latin-1")
    return "-".join(map(str, (status_of(answer), len(body), total(body), total(head))))


def contents(answer: Answer) -> bytes:
    """The body as a page sees it."""
    zipped_up = ("Content-Encoding", "gzip") in answer.headers
    return gzip.decompress(answer.body) if zipped_up else answer.body


def status_of(answer: Answer) -> int:
    return int(answer.status.split()[0])


def total(data: bytes) -> int:
    """The script's ``sum``."""
    found = 0
    for byte in data:
        found = (found * 31 + byte) & 0xFFFFFFFF
    return found


class Corners(Site):
    """Has any picture, at another port as well."""

    @property
    def rules(self) -> tuple[str, ...]:
        return f"MAP secure.site.test 127.0.0.1:{self.tls_port}", *super().rules

    def answer(self, method: str, url: str) -> Answer:
        if url.startswith(f"{WWW}/seen/"):
            return typed(png(9), "image/png")
        return super().answer(method, url)


def make_corners() -> Corners:
    site = Corners()
    cors = ("Access-Control-Allow-Origin", "*")
    odd = (("X-Odd", ODD), ("X-Twice", "one"), ("X-Twice", "two"))
    site.put(f"{WWW}/", typed(PAGE.encode(), "text/html"))
    site.put(f"{OTHER}/font.woff2", typed(b"wOF2 no font", "font/woff2", cors))
    site.put(f"{WWW}/odd.txt", typed(bytes(range(256)), "text/plain", *odd))
    site.put(f"{WWW}/latin.txt", typed(b"latin", "text/plain", ("X-Latin", "caf\xe9 50%")))
    site.put(f"{WWW}/zipped.txt", zipped(b"zip" * 5000, 'text/plain; charset="x"'))
    site.put(f"{WWW}{LONG_PATH}", typed(b"long", "text/plain", ("X-Long", LONG_VALUE)))
    for method, path, size in ASKED:
        if path == "/form":
            said = typed(f"{method} of {size}".encode() * (size + 1), "text/plain")
            site.sized[method, f"{WWW}/form", size] = said
    site.put(f"{WWW}/odd.txt", typed(bytes(256), "text/plain", *odd), "HEAD")
    site.put(f"{WWW}/head-only", typed(bytes(1234), "text/plain", *odd), "HEAD")
    site.put(f"{WWW}/gone.txt", Answer(b"gone", "404 Not Found", (("Content-Type", "a/b"),)))
    site.put(f"{WWW}/error", Answer(b"error" * 99, "503 Service Unavailable", odd))
    site.put(f"{WWW}/nothing", Answer(status="204 No Content", headers=odd))
    site.put(f"{WWW}/hop", moved(f"{OTHER}/hop?a=b"))
    site.put(f"{OTHER}/hop?a=b", moved(f"{SECURE}/hop", cors))
    site.put(f"{SECURE}/hop", moved("/end.txt", cors))
    site.put(f"{SECURE}/end.txt", typed(b"the end", "text/plain", cors))
    site.put(f"{PORT}/port.txt", typed(b"8080", "text/plain", cors))
    site.put(f"{SECURE}:8443/port.txt", typed(b"8443", "text/plain", cors))
    site.put(f"{SECURE}/plain.txt", zipped(b"TLS", "text/plain", cors))
    return site


def moved(location: str, *more: tuple[str, str]) -> Answer:
    return Answer(b"<p>moved</p>", "302 Found", (("Location", location), *more))


@pytest.fixture(scope="module")
def site() -> Site:
    return make_corners()


@pytest.fixture(scope="module")
def ran(house: House, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    with serving(site, make_context(folder, "secure.site.test")):
        said = house.record(site, f"{WWW}/", "corners", "--ca", str(folder / "authority.pem"))
    assert "left out" not in said
    return house.run(page="corners")


def absolute(url: str) -> str:
    return url if "://" in url else WWW + url


def answer_of(site: Site, method: str, url: str, size: int = 0) -> Answer:
    """What the server answered, at the end of redirects."""
    answer = site.sized.get((method, url, size)) or site.answer(method, url)
    location = dict(answer.headers).get("Location")
    if location is None:
        return answer
    return answer_of(site, method, location if "://" in location else SECURE + location)


def test_a_script_sees_the_same_responses(house: House, ran: Ran, site: Site) -> None:
    record = ran.records[0]
    assert_exact(record, house.archive("corners"))
    looks = [look(method, answer_of(site, method, absolute(url), n)) for method, url, n in ASKED]
    asked = [request.url for request in load_of(record).requests]
    assert f"{WWW}/seen/{'_'.join(looks)}.png" in asked


def test_the_manifest_says_what_held_the_guests(ran: Ran) -> None:
    manifest = json.loads((ran.folder / "manifest.json").read_text())
    assert manifest["environment"]["facts"]["confinement"] == "jail"


def test_the_load_has_the_sizes_that_were_sent(ran: Ran, site: Site) -> None:
    forms = []
    for entry in ran.har(ran.records[0]):
        method, url = entry["request"]["method"], entry["request"]["url"]
        response = entry["response"]
        if url.endswith("/form"):
            forms.append((method, response["status"], response["bodySize"]))
            continue
        answer = site.answer(method, url)
        body = b"" if method == "HEAD" else answer.body
        assert response["status"] == status_of(answer), url
        if status_of(answer) != 302:
            # DevTools writes a head with other characters than ASCII shorter than it is.
            if not url.endswith("/latin.txt"):
                assert response["bodySize"] == len(body), url
            assert response["content"]["size"] == (len(contents(answer)) if body else 0), url
    assert forms == [
        (method, 200, len(answer.body)) for (method, _, _), answer in site.sized.items()
    ]


def test_the_archive_has_the_bytes_that_were_sent(house: House, site: Site) -> None:
    for entry in house.archive("corners").entries:
        answer = site.sized.get((entry.method, entry.url, entry.request_body_size))
        answer = answer or site.answer(entry.method, entry.url)
        body = b"" if entry.method == "HEAD" else answer.body
        assert (entry.status, entry.body_size) == (status_of(answer), len(body)), entry.url
        assert (entry.body.read_bytes() if entry.body else b"") == body, entry.url
        assert set(answer.headers) <= set(entry.headers), entry.url
