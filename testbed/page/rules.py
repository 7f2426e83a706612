"""What redaction takes for a secret: the rules, as data, and how they judge names and values.

docs/decisions/page-redaction.md says why these and not others.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Literal

Verdict = Literal["name", "shape", "e-mail address"]

SECRET_HEADERS = frozenset(
    {
        *("cookie", "cookie2", "set-cookie", "set-cookie2", "authorization", "www-authenticate"),
        *("proxy-authorization", "proxy-authenticate", "authentication-info"),
        *("proxy-authentication-info", "x-api-key", "x-goog-api-key", "x-client-data"),
        *("x-wp-nonce", "x-forwarded-user", "x-remote-user", "sec-session-id", "dpop"),
    }
)
"""Headers of requests and responses, in lower case, that redaction removes."""

SECRET_HEADER_WORDS = frozenset(
    {"token", "secret", "password", "apikey", "session", "sessionid", "csrf", "xsrf", "jwt"}
)
"""A header with one of these words in its name is removed too: ``X-CSRF-Token``."""

CERTAIN_NAMES = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "clientsecret"),
        *("accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "csrftoken"),
        *("xsrftoken", "securitytoken", "logintoken", "usertoken", "bearertoken", "jwt"),
        *("apikey", "apisecret", "accesskey", "secretkey", "privatekey", "authorization"),
        *("sessionid", "jsessionid", "phpsessid", "sessid", "aspsessionid", "otp", "samlresponse"),
        *("xamzsecuritytoken", "xamzsignature", "xamzcredential", "xgoogsignature"),
    }
)
"""Parameters whose value is secret whatever it looks like; names without case and punctuation."""

LIKELY_WORDS = frozenset(
    {
        *("token", "auth", "oauth", "key", "sig", "signature", "session", "sess", "sid", "code"),
        *("state", "nonce", "ticket", "credential", "credentials", "csrf", "xsrf", "hmac", "hdnea"),
        *("password", "passwd", "secret", "jwt", "apikey", "sessionid", "sessid", "otp", "pin"),
        *("policy", "samlrequest", "assertion", "viewstate", "login", "invite", "gclid", "fbclid"),
    }
)
"""Parameters whose name is or ends in one of these words are secret unless the value is a word."""

VERSION_WORDS = frozenset(
    {"v", "ver", "version", "rev", "revision", "hash", "build", "cb", "etag", "sha", "md5"}
)
"""Parameters that hold fingerprints of files: a long hash there is no secret."""

SHORTEST_LIKELY = 6
_LONGEST_WORD = 20
_LONG_RANDOM = 32

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLAIN = re.compile(r"([A-Z]?[a-z]+|[A-Z]+)([-_. ,/]([A-Z]?[a-z]+|[A-Z]+|[0-9]{1,2}))*")
_FLAT = re.compile(r"[0-9]{1,5}|[0-9]+\.[0-9]{1,3}")
_JWT = re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")
_EMAIL = re.compile(r"[^@\s/?&=:;,<>]+@[^@\s/?&=:;,<>]+\.[A-Za-z]{2,}")
_REDACTED = re.compile(r"[^0-9A-Za-z]*(x[^0-9A-Za-z]*){4,}[0-9]{0,4}[^0-9A-Za-z]*|0+[0-9]{0,4}")


def split_words(name: str) -> tuple[str, ...]:
    """The words of a name in any convention, in lower case: ``userSession-ID`` has three."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def is_secret_header(name: str) -> bool:
    """Whether a header of a request or response is removed."""
    return name.lower() in SECRET_HEADERS or not SECRET_HEADER_WORDS.isdisjoint(split_words(name))


def judge(name: str, value: str) -> Verdict | None:
    """Whether a parameter's decoded value is secret, and by which kind of rule.

    What redaction itself left there is not.
    """
    if not value or _REDACTED.fullmatch(value):
        return None
    if is_certain(name):
        return "name"
    words = split_words(name)
    if words and words[-1] in LIKELY_WORDS and not _is_everyday(value):
        return "name"
    if _EMAIL.fullmatch(value):
        return "e-mail address"
    if _JWT.fullmatch(value):
        return "shape"
    if (not words or words[-1] not in VERSION_WORDS) and _is_random(value):
        return "shape"
    return None


def is_certain(name: str) -> bool:
    """Whether the name alone says that the value is secret."""
    return "".join(split_words(name)) in CERTAIN_NAMES


def is_distinctive(value: str) -> bool:
    """Whether the value can mean only itself wherever it stands, so that it is replaced there."""
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if len(set(value)) < SHORTEST_LIKELY:
        return False
    if letters and digits:
        return len(value) >= 12
    return len(value) >= 16 and not _PLAIN.fullmatch(value)


def _is_everyday(value: str) -> bool:
    """Short, or words, or a small number: not what a server hands out as a secret."""
    if len(value) < SHORTEST_LIKELY or _FLAT.fullmatch(value):
        return True
    return len(value) < _LONGEST_WORD and _PLAIN.fullmatch(value) is not None


def _is_random(value: str) -> bool:
    if len(value) < _LONG_RANDOM:
        return False
    if _UUID.fullmatch(value):
        return True
    if _HEX.fullmatch(value):
        return _entropy_bits(value) >= 3.0
    kinds = (str.islower, str.isupper, str.isdigit)
    varied = all(any(map(kind, value)) for kind in kinds)
    return bool(_BASE64.fullmatch(value)) and varied and _entropy_bits(value) >= 4.0


def _entropy_bits(value: str) -> float:
    """Shannon's entropy of the characters, in bits for each."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
