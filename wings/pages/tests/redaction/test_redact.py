"""Secrets leave a recording the same way everywhere, and what is left still replays."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from base64 import b64encode
from datetime import date
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.errors import ConfigurationError
from wings.pages.coding import decode, encode
from wings.pages.exchange import PageExchange, Recording
from wings.pages.redaction.redact import redact
from wings.pages.redaction.scrub import Scrubber

TOKEN = "a1B2c3D4e5F6g7H8"  # noqa: S105
BLANK = "xxxxxxxxxxxxxxxx"
ROOT = PageExchange("https://a.example/", 200, how="root", mime="text/html")


def recording(*exchanges: PageExchange, **more: Any) -> Recording:
    base = Recording("A page", exchanges[0].url, date(2026, 1, 2), "recorded", exchanges)
    return dataclasses.replace(base, **more)


def get(url: str, **more: Any) -> PageExchange:
    return dataclasses.replace(PageExchange(url, 200), **more)


def with_body(text: str | bytes, encoding: str = "", spare: int = 30, **more: Any) -> PageExchange:
    raw = text if isinstance(text, bytes) else text.encode()
    size = len(encode(raw, encoding, 0)) + spare
    body = encode(raw, encoding, size)
    headers = (("Content-Encoding", encoding),) if encoding else more.pop("headers", ())
    return dataclasses.replace(
        ROOT, body=body, body_size=len(body), decoded_size=len(raw), headers=headers, **more
    )


def redacted_text(text: str, *urls: str) -> str:
    """What becomes of the root's body when ``urls`` were asked for, too."""
    found = redact(recording(with_body(text), *map(get, urls)))
    assert found.exchanges[0].body is not None
    return found.exchanges[0].body.decode()


def redacted_url(url: str) -> str:
    return redact(recording(get(url))).exchanges[0].url


def test_nothing_secret_nothing_changed() -> None:
    plain = recording(with_body("<p>token</p>"), get("https://b.example/x.js?v=1&page=2"))
    assert redact(plain) == plain


def test_secret_headers_go_and_sizes_stay() -> None:
    request = (("Cookie", "a=1"), ("Accept", "*/*"), ("X-CSRF-Token", "t"))
    answer = (("Set-Cookie", "sid=1"), ("set-cookie", "b=2"), ("ETag", '"1"'))
    page = get(ROOT.url, request_headers=request, headers=answer, headers_size=432)
    found = redact(recording(page))
    assert found.exchanges[0].request_headers == (("Accept", "*/*"),)
    assert found.exchanges[0].headers == (("ETag", '"1"'),)
    assert found.exchanges[0].headers_size == 432
    assert found.notes == (
        "Secret headers that were removed: 1 cookie, 2 set-cookie, 1 x-csrf-token.",
    )


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/?q=1&token=abc123&z=2", "https://a.example/?q=1&token=xxxxxx&z=2"),
        ("https://a.example/?password=a", "https://a.example/?password=x"),
        ("https://a.example/?sig=ab%2Bcd%3D12", "https://a.example/?sig=xx%2Bxx%3Dxx"),
        ("https://a.example/?otp=%41%42", "https://a.example/?otp=%78%78"),
        ("https://a.example/?pin=123456", "https://a.example/?pin=111111"),
        ("https://a.example/?code=p%C3%A4ss77", "https://a.example/?code=x%78%78xxxx"),
        ("https://a.example/b;jsessionid=9F?c=d", "https://a.example/b;jsessionid=xx?c=d"),
        ("https://a.example/?m=joe%40b.example", "https://a.example/?m=xxx%40x.xxxxxxx"),
        ("https://a.example/#id_token=abc&x=1", "https://a.example/#id_token=xxx&x=1"),
        ("https://joe:pass@a.example/joe", "https://xxx:xxxx@a.example/joe"),
        ("https://a.example/?next=https%3A%2F%2Fb.example%2F%3Ftoken%3Dabc123%26q%3D1",
         "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Ftoken%3Dxxxxxx%26q%3D1"),
        ("https://a.example/?n=%2F%3Fm%3D%252F%253Ftoken%253Dabc123",
         "https://a.example/?n=%2F%3Fm%3D%252F%253Ftoken%253Dxxxxxx"),
        ("https://a.example/?token=abc123/abc123", "https://a.example/?token=xxxxxx/xxxxxx"),
        ("https://a.example/?state=texas&code=de", "https://a.example/?state=texas&code=de"),
    ],
)  # fmt: skip
def test_urls(url: str, expected: str) -> None:
    assert redacted_url(url) == expected


def test_different_values_stay_different_and_equal_ones_equal() -> None:
    values = ("abc123", "def456", "abc123", "9876ab")
    urls = [f"https://a.example/?token={value}" for value in values]
    found = [exchange.url[-6:] for exchange in redact(recording(*map(get, urls))).exchanges]
    assert found == ["xxxxxx", "xxxxx1", "xxxxxx", "xxxxx2"]


def test_the_same_everywhere() -> None:
    url = f"https://b.example/x?token={TOKEN}"
    link = f'<{url}>; rel="preload"; as=script'
    found = redact(recording(
        dataclasses.replace(ROOT, headers=(("Location", url), ("Link", link))), get(url),
        get("https://c.example/", initiator=url, request_headers=(("Referer", url),)),
        title=f"Page {TOKEN}", notes=(f"{url}: no body",),
    ))  # fmt: skip
    blank = f"https://b.example/x?token={BLANK}"
    root, script, image = found.exchanges
    assert root.headers == (("Location", blank), ("Link", f'<{blank}>; rel="preload"; as=script'))
    assert script.url == image.initiator == blank
    assert image.request_headers == (("Referer", blank),)
    assert (found.title, found.notes[0]) == (f"Page {BLANK}", f"{blank}: no body")


def test_bodies_in_all_their_forms() -> None:
    url = "https://b.example/x?a=1&sig=ab/cd+12="
    forms = [
        'src="//b.example/x?a=1&amp;sig={}/{}+{}="',
        r'"https:\/\/b.example\/x?a=1\u0026sig={}\/{}+{}="',
        r"'x?a=1\x26sig\u003d{}\x2f{}\x2B{}\u003D'", "x%3Fa%3D1%26sig%3D{}%2F{}%2b{}%3D",
        "x%253Fa%253D1%2526sig%253D{}%252F{}%252B{}%253D",
        "?a=1&#x26;sig&#x3d;{}&#x2F;{}&#43;{}&#61;", '{{sig: "{}/{}+{}="}}',
        '{{"sig":"{}/{}+{}="}}', '<input name=sig data-sig="{}/{}+{}=">',
    ]  # fmt: skip
    for form in forms:
        text = redacted_text(form.format("ab", "cd", "12"), url)
        assert text == form.format("xx", "xx", "xx")


def test_distinctive_values_are_replaced_wherever_they_stand() -> None:
    url = f"https://b.example/?token={TOKEN}"
    text = f"var t='{TOKEN}',u=[\"{TOKEN}\"]"
    assert redacted_text(text, url) == text.replace(TOKEN, BLANK)


def test_short_or_wordlike_values_are_replaced_only_after_their_name() -> None:
    text = "password=home; home; token=ab12cd; ab12cd; token=ab12cdef; xpassword = homes"
    urls = ("https://b.example/?password=home", "https://b.example/?token=ab12cd")
    assert redacted_text(text, *urls) == (
        "password=xxxx; home; token=xxxxxx; ab12cd; token=ab12cdef; xpassword = homes"
    )


def test_values_of_removed_headers_leave_the_bodies_too() -> None:
    headers = (("Cookie", f"theme=dark; sid={TOKEN}"), ("Authorization", f"Bearer {TOKEN}zz"))
    page = with_body(f'<meta content="{TOKEN}"><p>dark {TOKEN}zz', request_headers=headers)
    body = redact(recording(page)).exchanges[0].body
    assert body == f'<meta content="{BLANK}"><p>dark {BLANK}xx'.encode()


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "br", "zstd"])
def test_compressed_bodies_keep_their_transferred_size(encoding: str) -> None:
    text = "".join(f"<p>{n} words and ?token={TOKEN}</p>" for n in range(200))
    page = with_body(text, encoding)
    found = redact(recording(page, get(f"https://b.example/?token={TOKEN}")))
    body = found.exchanges[0].body
    assert body is not None
    assert len(body) == found.exchanges[0].body_size == page.body_size
    assert decode(body, encoding, 10**6).decode() == text.replace(TOKEN, BLANK)
    assert found.notes == (
        "Secret values that were replaced: 1 by the parameter's name; in 1 URLs and 1 bodies.",
    )


def test_a_size_that_cannot_be_reached_is_a_note() -> None:
    # The value is a copy of what stands before it, and so costs nothing; its placeholder does.
    value = "pale-yellow-submarine-under-heavy-rain"
    page = with_body(f"{value} ?password={value}", "gzip", spare=0)
    found = redact(recording(page, get(f"https://b.example/?password={value}")))
    assert found.exchanges[0].body_size > page.body_size
    assert f"recorded {page.body_size}." in found.notes[-1]


def test_a_body_that_cannot_be_searched_is_a_note() -> None:
    page = with_body("text", "gzip")
    assert page.body is not None
    page = dataclasses.replace(page, body=page.body[:-1], body_size=page.body_size - 1)
    found = redact(recording(page, get(f"https://b.example/?token={TOKEN}")))
    assert found.exchanges[0] == page
    reason = "gzip data is truncated."
    told = f"https://a.example/: the body was not searched for secrets: {reason}"
    assert found.notes[-1] == told


@pytest.mark.parametrize("name", ["sha256", "sha384", "sha512"])
def test_integrity_checks_follow(name: str) -> None:
    script = f"fetch('?token={TOKEN}')"
    digest = b64encode(hashlib.new(name, script.encode()).digest()).decode()
    after = b64encode(hashlib.new(name, script.replace(TOKEN, BLANK).encode()).digest()).decode()
    page = with_body(f'<script integrity="{name}-{digest}">', "gzip", spare=9)
    other = dataclasses.replace(with_body(script), url=f"https://b.example/?token={TOKEN}")
    found = redact(recording(page, other))
    root = found.exchanges[0]
    assert root.body is not None
    text = decode(root.body, "gzip", 500).decode()
    assert text == f'<script integrity="{name}-{after}">'
    assert root.body_size == page.body_size


def test_pictures_are_left_alone_but_svg_is_text() -> None:
    text = f"<svg>?token={TOKEN}</svg>"
    other = get(f"https://b.example/?token={TOKEN}")
    for mime, kept in (("image/png", True), ("image/svg+xml", False), ("", False)):
        page = dataclasses.replace(with_body(text), mime=mime)
        assert (redact(recording(page, other)).exchanges[0] == page) is kept


def test_no_value_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    headers = (("Cookie", f"sid={TOKEN}"),)
    urls = [f"https://b.example/?token={TOKEN}", "https://b.example/?mail=joe@c.example"]
    found = redact(recording(with_body(TOKEN, request_headers=headers), *map(get, urls)))
    assert found.notes == (
        "Secret headers that were removed: 1 cookie.",
        "Secret values that were replaced: 1 by the parameter's name, 1 that are e-mail "
        "addresses; in 2 URLs and 1 bodies.",
    )
    everything = json.dumps(dataclasses.asdict(found), default=str) + caplog.text
    assert TOKEN not in everything
    assert "joe" not in everything


def test_a_second_time_changes_nothing() -> None:
    urls = [f"https://b.example/?token={value}" for value in (TOKEN, "def456", "123456")]
    once = redact(recording(with_body(f"?token={TOKEN}", "gzip"), *map(get, urls)))
    assert redact(once) == once


@pytest.mark.parametrize(
    "cookie",
    [
        "landing=https%3A%2F%2Fwww.a-1b2c3d4e5f.example%2F", "ref=https://www.a-1b2c3d4e5f.example/",
        "host=www.a-1b2c3d4e5f.example", "host=a-1b2c3d4e5f", "host=1b2c3d4e5f",
        "at=www.a-1b2c3d4e5f.example/shop/index-2024.html", "at=/shop/index-2024.html", "port=8443",
        "type=text/html; lang=javascript; kind=application/x-javascript1; s=https; m=html",
        "p=<script src='a.js'></script>", 'q={"u":"https://www.a-1b2c3d4e5f.example/"}',
    ],
)  # fmt: skip
def test_a_cookie_that_is_of_the_page_itself_changes_nothing(cookie: str) -> None:
    root = "https://www.a-1b2c3d4e5f.example:8443/shop/index-2024.html"
    text = (
        "<!doctype html><html><script src='a.js' type=application/x-javascript1></script>"
        f"<a href={root}>"
        '<script>var h="www.a-1b2c3d4e5f.example",s="https"</script>'
    )
    headers = (("Content-Type", "application/x-javascript1"), ("Location", root))
    asked = (("Cookie", cookie),)
    page = with_body(text, url=root, mime="text/html", request_headers=asked, headers=headers)
    found = redact(recording(page)).exchanges[0]
    assert found == dataclasses.replace(page, request_headers=())


@pytest.mark.parametrize("name", ["state", "key", "password", "access_token", "tok", "q"])
@pytest.mark.parametrize(
    "value",
    ["https%3A%2F%2Fwww.b.example%2F", "www.b.example", "b.example", "//www.b.example/",
     "http%3A%2F%2Fwww.b.example%3A8080%2F"],
)  # fmt: skip
def test_a_parameter_that_is_an_address_keeps_scheme_and_host(name: str, value: str) -> None:
    asked = f"https://www.b.example/?{name}={value}"
    found = redact(recording(with_body(f'<a href="{asked}">www.b.example'), get(asked)))
    assert found.exchanges[1].url == asked
    assert found.exchanges[0].body == f'<a href="{asked}">www.b.example'.encode()


def test_a_secret_that_is_a_part_of_a_host_stays_there() -> None:
    url = f"https://{TOKEN.lower()}.cdn.example/x?token={TOKEN.lower()}"
    text = redacted_text(f"//{TOKEN.lower()}.cdn.example/x?token={TOKEN.lower()}", url)
    assert text == f"//{TOKEN.lower()}.cdn.example/x?token={BLANK}"
    other = f"https://b.example/?token={TOKEN}"
    assert redacted_text(f"//{TOKEN}.c.example/{TOKEN}", other) == f"//{TOKEN}.c.example/{BLANK}"


def test_an_address_in_a_mail_address_or_login_keeps_its_host() -> None:
    assert redacted_url("https://a.example/?u=joe@a.example").endswith("?u=xxx@a.example")
    text = redacted_text("//joe@a.example/ joe@a.example", "https://a.example/?u=joe@a.example")
    assert text == "//xxx@a.example/ xxx@a.example"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/?tok=a1b2c3d4", "https://a.example/?tok=xxxxxxxx"),
        ("https://a.example/reset/3f9aB7kQ2mZx8LpW4tYv", "https://a.example/reset/" + "x" * 20),
        ("https://a.example/s/3f9aB7kQ2mZx8LpW4tYv/e#a", f"https://a.example/s/{'x' * 20}/e#a"),
        ("https://a.example/u/123e4567-e89b-12d3-a456-426614174000/",
         "https://a.example/u/xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx/"),
        ("https://a.example/?n=4111111111111111", "https://a.example/?n=1111111111111111"),
        ("https://a.example/pay/4111-1111-1111-1111", "https://a.example/pay/1111-1111-1111-1111"),
        ("https://a.example/?x=%2B49%20151%2012345678", "https://a.example/?x=%2B11%20111%2011111111"),
        ("https://a.example/?phone=015112345678", "https://a.example/?phone=111111111111"),
        ("https://a.example/?ll=48.137154,11.576124&z=9", "https://a.example/?ll=11.111111,11.111111&z=9"),
        ("https://a.example/map/@-48.1371,11.5761,15z", "https://a.example/map/@-11.1111,11.1111,15z"),
        ("https://a.example/?lat=48.1372&lng=-11.5761", "https://a.example/?lat=11.1111&lng=-11.1111"),
        ("https://a.example/?next=%2Freset%2F3f9aB7kQ2mZx8LpW4tYv",
         "https://a.example/?next=%2Freset%2F" + "x" * 20),
    ],
)  # fmt: skip
def test_numbers_and_links_that_are_of_one_person(url: str, expected: str) -> None:
    assert redacted_url(url) == expected
    once = redact(recording(get(url)))
    assert redact(once) == once


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/static/3f9aB7kQ2mZx8LpW4tYv/main.8a7c3f2e9b1d4c5e6f70.chunk.js",
        "https://a.example/fonts/open-sans-v34-latin-regular.woff2",
        "https://a.example/news/the-longest-title-of-them-all-is-this-2024",
        "https://a.example/?t=1700000000000&n=4111111111111112", "https://a.example/?lat=48.1",
        "https://a.example/?q=1+12345678&w=1280&h=720", "https://a.example/?phone=none",
        "https://a.example/?key=text/html&state=/shop/cart&code=application/json",
    ],
)  # fmt: skip
def test_what_only_looks_like_it_stays(url: str) -> None:
    assert redacted_url(url) == url


def test_a_number_stays_a_number_in_a_body() -> None:
    url = "https://b.example/?pin=123456&lat=48.13715"
    text = redacted_text('{"pin":123456,"lat":48.13715}', url)
    assert json.loads(text) == {"pin": 111111, "lat": 11.11111}


def test_a_token_that_begins_like_an_escape_is_none_of_it() -> None:
    token = "2Fa1B2c3D4e5F6g7"  # noqa: S105
    text = f"x%2Fa1B2c3D4e5F6g7 %252Fa1B2c3D4e5F6g7 {token} a{token} {token}a \n{token} %2F{token}"
    blank = "x" * 16
    assert redacted_text(text, f"https://b.example/?token={token}") == (
        f"x%2Fa1B2c3D4e5F6g7 %252Fa1B2c3D4e5F6g7 {blank} a{token} {token}a \n{blank} %2F{blank}"
    )


def test_more_values_than_placeholders_keep_addresses_apart() -> None:
    letters = "abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOP"
    urls = [f"https://b.example/?otp={letter}" for letter in letters]
    found = [exchange.url for exchange in redact(recording(*map(get, urls))).exchanges]
    assert len(set(found)) == len(urls)


@pytest.mark.parametrize("where", ["header", "meta"])
def test_a_policy_that_names_inline_scripts_follows(where: str) -> None:
    script = f"fetch('?token={TOKEN}')"
    digests = [b64encode(hashlib.sha256(text.encode()).digest()).decode()
               for text in (script, script.replace(TOKEN, BLANK))]  # fmt: skip
    policy = "script-src 'sha256-{}'"
    markup = f'<meta content="{policy}">' if where == "meta" else ""
    page = with_body(f"{markup.format(digests[0])}<script>{script}</script>")
    if where == "header":
        page = dataclasses.replace(page, headers=(("CSP", policy.format(digests[0])),))
    found = redact(recording(page, get(f"https://b.example/?token={TOKEN}"))).exchanges[0]
    assert digests[0] not in str(found)
    assert digests[1] in (str(found.headers) if where == "header" else str(found.body))


def test_a_search_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wings.pages.redaction.scrub.MOST_LOOKS", 50)
    with pytest.raises(ConfigurationError, match="give --anonymize or --keep-secrets"):
        redacted_text("?password=a " * 51, "https://b.example/?password=a")


OWN = ("https", "www.img-1a2b3c.example", "img-1a2b3c", "8443", "/shop/a1b2c3d4e5f6.html",
       "text/html", "application/x-javascript1", "utf-8", "script", "gzip", "https://www.img-1a2b3c.example:8443/",
       "%2F", "?", "&token=", TOKEN, "=", "/", ":", "@", ".", "joe", "<", '"')  # fmt: skip
PIECES = st.lists(st.sampled_from(OWN), max_size=6).map("".join)


@settings(max_examples=200)
@given(
    st.lists(PIECES, max_size=3),
    st.lists(st.tuples(st.sampled_from(("token", "q", "password", "state")), PIECES), max_size=3),
)
def test_whatever_is_secret_hosts_types_and_markup_stay(
    cookies: list[str], parameters: list[tuple[str, str]]
) -> None:
    root = "https://www.img-1a2b3c.example:8443/shop/a1b2c3d4e5f6.html"
    text = (
        f'<!doctype html><script type="application/x-javascript1" src="{root}"></script>'
        '<meta charset=utf-8><img src="//www.img-1a2b3c.example:8443/a.png">'
        '"https:\\/\\/www.img-1a2b3c.example"'
    )
    query = "&".join(f"{name}={quote(value)}" for name, value in parameters)
    cookie = (("Cookie", "; ".join(f"c={value}" for value in cookies)),)
    page = with_body(
        text, url=root, request_headers=cookie, headers=(("Content-Type", "text/html"),)
    )
    found = redact(recording(page, get(f"{root}?{query}", mime="text/html")))
    assert found.exchanges[0].headers == page.headers
    for exchange in found.exchanges:
        assert exchange.url.startswith("https://www.img-1a2b3c.example:8443/shop/")
        assert exchange.mime == ("text/html" if exchange is found.exchanges[1] else page.mime)
    assert found.exchanges[0].body is not None
    kept = found.exchanges[0].body.decode()
    assert len(kept) == len(text)
    for piece in ('<script type="application/x-javascript1" src="https://www.img-1a2b3c.example:8443/shop/',
                  "<!doctype html>", "charset=utf-8", '"//www.img-1a2b3c.example:8443/a.png"',
                  '"https:\\/\\/www.img-1a2b3c.example"'):  # fmt: skip
        assert piece in kept
    # The page still asks for the URLs that the archive has.
    assert found.exchanges[0].url in kept


@given(st.binary(max_size=60), st.binary(max_size=300))
def test_lengths_never_change(value: bytes, body: bytes) -> None:
    scrubber = Scrubber()
    url = "https://a.example/?token=" + "".join(f"%{byte:02X}" for byte in value)
    scrubber.learn_url(url)
    assert len(scrubber.replace_text(url)) == len(url)
    assert len(scrubber.replace(body + value + body)) == 2 * len(body) + len(value)


FORMS = [
    "AKIA" + "Q7RZ3WX9K2LM5NPT",
    "AIza" + "SyD3f9K2lM5nPtQ7rZ3wX9k2Lm5NpTq7Rz1",
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "github_pat_" + "11ABCDEFG0a1B2c3D4e5F6_g7H8i9J0k1L2m3N4o5P6q7R8",
    "xoxb-" + "123456789012-a1B2c3D4e5F6g7H8",
    "sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c",
]


@pytest.mark.parametrize("secret", FORMS)
def test_what_names_itself_is_replaced_in_bodies(secret: str) -> None:
    clean = redacted_text(f'<script>var k="{secret}";</script> the rest')
    assert secret not in clean
    assert clean.endswith("the rest")
    assert redacted_text(clean) == clean


@pytest.mark.parametrize("newline", ["\n", "\\n"])
def test_private_keys_are_replaced_in_bodies(newline: str) -> None:
    lines = [b64encode(hashlib.sha512(bytes([n])).digest()[:48]).decode() for n in range(3)]
    key = newline.join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    clean = redacted_text(f'key = "{key}"')
    assert not any(line in clean for line in lines)
    assert clean.count(newline) == key.count(newline)


def test_what_only_looks_like_a_form_stays() -> None:
    text = "AKIA ghp_ eyJ.eyJ.x xoxb- sk_live_ -----BEGIN PUBLIC KEY-----\nAAAA\n-----END"
    assert redacted_text(text) == text


MODULE = ("https://www.a.example/_/scs/k=boq-id.Ui.en.aYf8QZ2kLmP.es5.O/am=4GQxT7hBc9Kd1Lm3Np5/"
          "rs=AOaEmlF7k2Qz9XvB4tYw8Lp/m=_b")  # fmt: skip
PUBLIC = (("Cache-Control", "public, max-age=31536000"),)


@pytest.mark.parametrize(
    ("mime", "headers", "kept"),
    [
        ("text/javascript", PUBLIC, True), ("text/javascript", (), True), ("text/css", (), True),
        ("font/woff2", (), True), ("image/png", PUBLIC, True), ("image/png", (), False),
        ("text/javascript", (("Cache-Control", "private, max-age=60"),), False),
        ("text/javascript", (*PUBLIC, ("Vary", "Accept, Cookie")), False),
        ("text/javascript", (*PUBLIC, ("Set-Cookie", "a=b")), False),
        ("text/html", PUBLIC, False), ("application/json", PUBLIC, False),
    ],
)  # fmt: skip
def test_the_path_of_a_file_that_anybody_gets_stays(
    mime: str, headers: tuple[tuple[str, str], ...], kept: bool
) -> None:
    text = f'<script src="{MODULE}">'
    asked = (("Referer", MODULE),)
    file = get(MODULE, mime=mime, headers=headers, request_headers=asked)
    found = redact(recording(with_body(text, url="https://www.a.example/"), file))
    assert (found.exchanges[1].url == MODULE) is kept
    assert found.exchanges[0].body is not None
    assert found.exchanges[1].url in found.exchanges[0].body.decode()
    said = [note for note in found.notes if "--keep-secrets" in note]
    assert len(said) == (not kept) and all(found.exchanges[1].url in note for note in said)


def test_a_file_for_who_logged_in_is_for_one_person() -> None:
    asked = (("Authorization", "Bearer abc"),)
    file = get(MODULE, mime="text/javascript", headers=PUBLIC, request_headers=asked)
    assert redact(recording(file)).exchanges[0].url != MODULE


def test_a_token_in_the_path_of_a_public_file_is_one_all_the_same() -> None:
    for secret in (FORMS[-1], "3f9aB7kQ2mZx8LpW4tYv"):
        file = get(f"https://a.example/s/{secret}/w", mime="text/javascript", headers=PUBLIC)
        other = get(f"https://a.example/reset/{secret}", mime="text/html")
        found = redact(recording(file, *[other] * (secret != FORMS[-1])))
        assert secret not in found.exchanges[0].url


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b'{"q": "shoes"}', b'{"q": "shoes"}'),
        (f'{{"t": "{TOKEN}"}}'.encode(), f'{{"t": "{BLANK}"}}'.encode()),
        (b'{"user": "a", "password": "hunter2"}', None),
        (b"user=a&passwd=hunter2", None),
        (b'--x\r\nContent-Disposition: form-data; name="pwd"\r\n\r\nhunter2\r\n--x--', None),
        (b"a password is here", b"a password is here"),
    ],
)
def test_bodies_of_requests_have_no_secrets(body: bytes, kept: bytes | None) -> None:
    sent = get(f"https://a.example/?access_token={TOKEN}", method="POST", request_body=body)
    assert redact(recording(ROOT, sent)).exchanges[1].request_body == kept
