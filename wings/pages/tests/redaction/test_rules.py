"""Which names and values are secrets."""

from __future__ import annotations

import hashlib

import pytest

from wings.pages.redaction.rules import is_distinctive, is_secret_header, judge, split_words

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
HASH = hashlib.sha256(b"some file").hexdigest()


def test_names_have_words_in_any_convention() -> None:
    assert split_words("X-CSRF-Token") == ("x", "csrf", "token")
    assert split_words("accessToken") == split_words("ACCESS_TOKEN") == ("access", "token")
    assert split_words("userSessionID2") == ("user", "session", "id", "2")


@pytest.mark.parametrize(
    "name",
    ["Cookie", "Set-Cookie", "authorization", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token",
     "X-CSRF-Token", "x-xsrf-token", "X-Amz-Security-Token", "X-My-Session"],
)  # fmt: skip
def test_secret_headers(name: str) -> None:
    assert is_secret_header(name)


@pytest.mark.parametrize(
    "name",
    ["Content-Type", "Location", "Referer", "User-Agent", "ETag", "Cache-Control", "Origin",
     "Access-Control-Allow-Credentials", "Content-Security-Policy", "Vary", "X-Request-Id"],
)  # fmt: skip
def test_other_headers(name: str) -> None:
    assert not is_secret_header(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "a"), ("access_token", "7"), ("idToken", "abc"), ("api-key", "open"),
        ("apikey", "homepage"), ("JSESSIONID", "1"), ("client_secret", "hush"),
        ("X-Amz-Signature", "beef"), ("SAMLResponse", "PHNhbWw"),
        ("token", "a1b2c3"), ("page_token", "CAUQAA7"), ("auth", "d41d8c"), ("key", "AIzaSyD4x"),
        ("sig", "x9=kL2"), ("signature", "0123456789"), ("session", "s-123456"), ("sid", "123456"),
        ("code", "SplxlOBeZQQYbYS6WxSbIA"), ("state", "af0ifjsldkj9"), ("oauth_nonce", "7d8f3e4a"),
    ],
)  # fmt: skip
def test_secret_by_name(name: str, value: str) -> None:
    assert judge(name, value) == "name"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "CA"), ("state", "california"), ("code", "en-us"), ("key", "home-page"),
        ("token", "12345"), ("auth", "true"), ("session", "Expired"), ("key", "summer sale"),
        ("keyword", "a1b2c3d4"), ("monkey", "a1b2c3d4"), ("q", "token"), ("id", "1234567890"),
        ("v", HASH), ("hash", HASH), ("file_version", HASH), ("q", "how to make a long sentence"),
        ("url", "https://example.org/a/long/path/without/any/secret/in/it.html"), ("token", ""),
        ("pages", "one_two_three_four_five_six_seven_eight"), ("a", "0" * 64),
    ],
)  # fmt: skip
def test_not_secret(name: str, value: str) -> None:
    assert judge(name, value) is None


def test_secret_by_shape() -> None:
    assert judge("v", JWT) == "shape"
    assert judge("x", HASH) == judge("x", HASH.upper()) == "shape"
    assert judge("x", "123e4567-e89b-12d3-a456-426614174000") == "shape"
    assert judge("x", "q0JxZ2V4YW1wbGUgb2YgYSBsb25nZXIgYmFzZTY0IHZhbHVl+/==") == "shape"
    assert judge("to", "joe.user@mail.example.org") == "e-mail address"


def test_what_redaction_left_is_not_secret() -> None:
    for value in ("xxxxxx", "xxxxx1", "xxxx-xxxx_xx12", "000000", "xxx@xxxxxxx.xxx"):
        assert judge("access_token", value) is None


def test_only_what_means_itself_is_distinctive() -> None:
    assert is_distinctive(JWT)
    assert is_distinctive("a1b2c3d4e5f6")
    assert is_distinctive("1234567890123456")
    for value in ("homepage", "a1b2c3", "california-dreaming", "aaaaaaaaaaa1", "123456789012"):
        assert not is_distinctive(value)
