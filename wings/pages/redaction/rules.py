"""Rules of redaction, as data, and how they judge names and values.

wings/pages/README.md has them in words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

Verdict = Literal[
    "name", "shape", "e-mail address", "card number", "phone number", "coordinates", "path"
]

SECRET_HEADERS = frozenset({
    *("cookie", "cookie2", "set-cookie", "set-cookie2", "authorization", "www-authenticate"),
    *("proxy-authorization", "proxy-authenticate", "authentication-info"),
    *("proxy-authentication-info", "x-api-key", "x-goog-api-key", "x-client-data"),
    *("x-wp-nonce", "x-forwarded-user", "x-remote-user", "sec-session-id", "dpop"),
})  # fmt: skip
"""Headers of requests and responses, in lower case, that redaction removes."""

SECRET_HEADER_WORDS = frozenset(
    {"token", "secret", "password", "apikey", "session", "sessionid", "csrf", "xsrf", "jwt"}
)
"""A header with one of these words in its name is removed too: ``X-CSRF-Token``."""

CERTAIN_NAMES = frozenset({
    *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "clientsecret"),
    *("accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "csrftoken"),
    *("xsrftoken", "securitytoken", "logintoken", "usertoken", "bearertoken", "jwt"),
    *("apikey", "apisecret", "accesskey", "secretkey", "privatekey", "authorization"),
    *("sessionid", "jsessionid", "phpsessid", "sessid", "aspsessionid", "otp", "samlresponse"),
    *("xamzsecuritytoken", "xamzsignature", "xamzcredential", "xgoogsignature"),
})  # fmt: skip
"""Parameters whose value is secret whatever it looks like; names without case and punctuation."""

LIKELY_WORDS = frozenset({
    *("token", "tok", "auth", "oauth", "key", "sig", "signature", "session", "sess", "sid", "code"),
    *("state", "nonce", "ticket", "credential", "credentials", "csrf", "xsrf", "hmac", "hdnea"),
    *("password", "passwd", "secret", "jwt", "apikey", "sessionid", "sessid", "otp", "pin"),
    *("policy", "samlrequest", "assertion", "viewstate", "login", "invite", "gclid", "fbclid"),
})  # fmt: skip
"""Parameters whose name is or ends in one of these words are secret unless the value is a word."""

VERSION_WORDS = frozenset(
    {"v", "ver", "version", "rev", "revision", "hash", "build", "cb", "etag", "sha", "md5"}
)
"""Parameters that hold fingerprints of files: a long hash there is no secret."""

PHONE_WORDS = frozenset(
    {"phone", "tel", "telephone", "mobile", "cell", "cellphone", "msisdn", "fax", "whatsapp"}
)
COORDINATE_WORDS = frozenset({"lat", "latitude", "lon", "lng", "long", "longitude"})
"""Parameters whose number is a place on earth, if it has three decimals: 100 m and less."""

STRUCTURAL_HEADERS = frozenset({
    *("content-type", "content-length", "content-encoding", "content-language", "vary"),
    *("transfer-encoding", "accept", "accept-encoding", "accept-language", "cache-control"),
    *("connection", "host", ":authority", ":scheme", ":method"),
})  # fmt: skip
"""Headers (lower case) whose values are words of the protocol: nothing in them is replaced."""

PUBLIC_CODE = ("text/css", "javascript", "ecmascript", "font/", "font-", "application/wasm")
PUBLIC_MEDIA = ("image/", "audio/", "video/")
"""Types of files that a page loads: what their paths hold is mostly a fingerprint."""

SHORTEST_LIKELY = 6
SHORTEST_HEADER = 16
SHORTEST_PATH = 20
"""Characters of a token in a path, or of a value of a removed header, that is secret."""
_LONGEST_WORD = 20
_LONG_RANDOM = 32

SELF_NAMED = re.compile(
    rb"(?<![\w/+])(?:"
    rb"(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|gh[oprsu]_[0-9A-Za-z]{36,255}"
    rb"|github_pat_\w{22,255}|glpat-[\w-]{20,}|xox[abeprs]-[0-9A-Za-z-]{10,}|xapp-[0-9A-Za-z-]{20,}"
    rb"|[rs]k_live_[0-9A-Za-z]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|npm_[0-9A-Za-z]{36}"
    rb"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}"
    rb")(?![\w/+])"
    rb"|(?<=PRIVATE KEY-----)(?:[0-9A-Za-z+/=\s]|\\[nr])+(?=-----END)"
)
"""Secrets that a body names by their own form: keys of clouds, shops and repositories, tokens of
chats, JSON Web Tokens (RFC 7519) with a signature, private keys in PEM (RFC 7468)."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLAIN = re.compile(r"([A-Z]?[a-z]+|[A-Z]+)([-_. ,/]([A-Z]?[a-z]+|[A-Z]+|[0-9]{1,2}))*")
_FLAT = re.compile(r"[0-9]{1,5}|[0-9]+\.[0-9]{1,3}")
_JWT = re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")
_EMAIL = re.compile(r"[^@\s/?&=:;,<>]+@[^@\s/?&=:;,<>]+\.[A-Za-z]{2,}")
_REDACTED = re.compile(
    r"[^0-9A-Za-z]*(?:x[^0-9A-Za-z]*){4,}(?:[0-9a-z][^0-9A-Za-z]*){0,4}|[+]?0+[0-9]{0,4}"
    r"|[+-]?(?:1[ ().,;|/-]*){4,}(?:[0-9][ ().,;|/-]*){0,4}"
)
_URL = re.compile(r"(?:(?:https?|wss?|ftp):)?//[^/?#]", re.IGNORECASE)
_MEDIA_TYPE = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[A-Za-z0-9.+*-]+(?:;.*)?"
)
_WORD_PATH = re.compile(r"/[\w./~-]*")
_PIECE = re.compile(r"[0-9A-Za-z_.~+/-]+={0,2}")
_PART = re.compile(r"[0-9A-Za-z_-]+")
_TOKEN = re.compile(r"[0-9A-Za-z_.~+/=@|:*!,-]+")
_RUN = re.compile(r"[0-9A-Za-z]+")
_STATIC = re.compile(
    r"\.(?:js|mjs|css|map|wasm|png|jpe?g|gif|svg|webp|avif|ico|bmp|woff2?|ttf|otf|eot|mp4|webm|mp3)$",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\w.-])[2-6](?:[ -]?[0-9]){12,18}(?![\w.-])")
_PHONE = re.compile(r"(?<![\w+])\+[1-9](?:[ ().-]{0,2}[0-9]){7,14}(?![\w.-])")
_PLACE = r"-?[0-9]{1,3}\.[0-9]{3,17}"
_PAIR = re.compile(rf"(?<![\w.-]){_PLACE}[,;|/ ]{{1,2}}{_PLACE}(?![0-9A-Za-z_])")
_PLACES = re.compile(_PLACE)
_DIALLED = re.compile(r"[0-9+ ().,/-]+")
# The pairs of letters that make three quarters of an English text, and a seventh of random letters.
_PAIR_LETTERS = (
    "thheineranreonatenndtiesorteofedisitalarsttontngsehaasouiolevecomedehiriroicneearace"
    "lichllbemasiomurcaeltalansdifohopeecprnoctusacotiltrlyncetutsssorsunlowageiewheewiem"
    "adolrtpowenaulnitsmoowpaimmiaishirsuid"
)
_PAIRS = frozenset(map("".join, zip(_PAIR_LETTERS[::2], _PAIR_LETTERS[1::2], strict=True)))
_WORDLIKE = 0.4


def split_words(name: str) -> tuple[str, ...]:
    """Return the words of a name in any convention, in lower case: ``userSession-ID`` has three."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def is_secret_header(name: str) -> bool:
    """Return whether a header of a request or response is removed."""
    return name.lower() in SECRET_HEADERS or not SECRET_HEADER_WORDS.isdisjoint(split_words(name))


def is_public_file(method: str, status: int, mime: str, headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether a response is a file that anybody gets, whatever its path is.

    That are code and fonts, unless their server says that they are for one person (RFC 9111
    section 5.2.2), and media of which it says that they are for everybody.
    """
    lower = [(name.lower(), value.lower()) for name, value in headers]
    control = ",".join(value for name, value in lower if name == "cache-control")
    varies = any(name == "vary" and "cookie" in value for name, value in lower)
    if method != "GET" or status != 200 or varies or any(name == "set-cookie" for name, _ in lower):
        return False
    if any(word in control for word in ("private", "no-store")):
        return False
    if any(word in mime for word in PUBLIC_CODE):
        return True
    return mime.startswith(PUBLIC_MEDIA) and any(w in control for w in ("public", "immutable"))


def judge(name: str, value: str) -> Verdict | None:
    """Return whether a parameter's decoded value is secret, and by which kind of rule.

    What redaction itself left there is not.
    """
    if not value or _REDACTED.fullmatch(value):
        return None
    if is_certain(name):
        return "name"
    words = split_words(name)
    last = words[-1] if words else ""
    if _EMAIL.fullmatch(value):
        return "e-mail address"
    if last in PHONE_WORDS and _is_dialled(value):
        return "phone number"
    if last in COORDINATE_WORDS and _PLACES.fullmatch(value):
        return "coordinates"
    if is_address(value):
        return None
    if last in LIKELY_WORDS and not _is_everyday(value):
        return "name"
    if _JWT.fullmatch(value):
        return "shape"
    if last not in VERSION_WORDS and _is_random(value):
        return "shape"
    return None


def is_address(value: str) -> bool:
    """Return whether the value is an address or a type, whose parts are to be judged."""
    if _URL.match(value) or _MEDIA_TYPE.fullmatch(value):
        return True
    return bool(_WORD_PATH.fullmatch(value)) and not any(map(is_random_run, _RUN.findall(value)))


def find_personal(text: str) -> Iterator[tuple[Verdict, str]]:
    """Yield numbers in a value or path that mean a person or a place, and of what kind."""
    candidates: list[tuple[Verdict, str]] = [
        *(("card number", number) for number in _CARD.findall(text) if _is_card(number)),
        *(("phone number", number) for number in _PHONE.findall(text)),
        *(("coordinates", pair) for pair in _PAIR.findall(text) if _is_place(pair)),
    ]
    yield from ((kind, number) for kind, number in candidates if not _REDACTED.fullmatch(number))


def path_tokens(path: str, *, is_public: bool) -> Iterator[str]:
    """Yield long random pieces of a path: what a link has that is given to one person only.

    Not those of scripts, pictures and the like, whose names are fingerprints of their contents, as
    ``is_public`` says of others.  A web token names itself (RFC 7519): it is none.
    """
    if is_public or _STATIC.search(path):
        yield from (token for token in _JWT.findall(path) if is_public)
        return
    for piece in _PART.findall(path):
        if len(piece) >= SHORTEST_PATH and is_opaque(piece) and not _REDACTED.fullmatch(piece):
            yield piece


def header_tokens(value: str) -> Iterator[str]:
    """Yield the pieces of a removed header's value that can mean only themselves."""
    for piece in _PIECE.findall(value):
        for part in dict.fromkeys((piece, *_PART.findall(piece))):
            if len(part) >= SHORTEST_HEADER and is_distinctive(part):
                yield part


def is_certain(name: str) -> bool:
    """Return whether the name alone says that the value is secret."""
    return "".join(split_words(name)) in CERTAIN_NAMES


def is_distinctive(value: str) -> bool:
    """Return whether the value can mean only itself anywhere, so that it is replaced there."""
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    shortest = 12 if letters and digits else 16
    return len(value) >= shortest and bool(_TOKEN.fullmatch(value)) and is_opaque(value)


def is_opaque(value: str) -> bool:
    """Return whether at least half of the value's letters and digits are random, no words."""
    runs = _RUN.findall(value)
    if len(set(value)) < SHORTEST_LIKELY:
        return False
    return 2 * sum(len(run) for run in runs if is_random_run(run)) >= sum(map(len, runs))


def is_random_run(run: str) -> bool:
    """Return whether letters and digits in a row are no word, name of an API, or small number."""
    if run.isdigit():
        return len(run) >= 9
    pairs = [first + second for first, second in pairwise(run.lower())]
    if sum(pair in _PAIRS for pair in pairs) >= _WORDLIKE * len(pairs):
        return False
    if run.isalpha():
        changes = sum(a.islower() and b.isupper() for a, b in pairwise(run))
        return len(run) >= 12 or (len(run) >= 8 and changes >= 3)
    return len(run) >= SHORTEST_LIKELY


def _is_dialled(value: str) -> bool:
    return bool(_DIALLED.fullmatch(value)) and 7 <= sum(map(str.isdigit, value)) <= 15


def _is_place(pair: str) -> bool:
    degrees = [abs(float(number)) for number in _PLACES.findall(pair)]
    return max(degrees) <= 180 and min(degrees) <= 90


def _is_card(text: str) -> bool:
    """Return whether the check digit is right (ISO/IEC 7812-1 annex B), as it is for one in ten."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return not (sum(digits[-1::-2]) + sum(doubled)) % 10 and len(set(digits)) > 1


def _is_everyday(value: str) -> bool:
    """Return whether it is short, words, or a small number: not what servers make as a secret."""
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
    long = bool(_BASE64.fullmatch(value)) and varied and _entropy_bits(value) >= 4.0
    return long and is_opaque(value)


def _entropy_bits(value: str) -> float:
    """Return Shannon's entropy of the characters, in bits for each."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
