r"""Finds secrets in URLs and replaces them in any text, however the text writes them.

A value of a URL can stand in a body as it is, percent-encoded (RFC 3986) once or twice, escaped
for HTML (``&amp;``) or for JSON and JavaScript (``\/``, ``\u0026``, ``\x26``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote_to_bytes

from testbed.page.rules import is_distinctive, judge

_PARAMETERS = (
    re.compile(rb"(?:^|[?&#](?:amp;)?)([^=&;#?/\s\"'<>]{1,80})=([^&#\s\"'<>;]+)"),
    re.compile(rb";([^=&;#?/\s\"'<>]{1,80})=([^&#\s\"'<>;?/]+)"),  # of a path: ;jsessionid=1
)
_USER = re.compile(rb"^[a-z][a-z0-9+.-]*://([^/?#@\s]+)@", re.IGNORECASE)
_ALNUM = re.compile(rb"[0-9A-Za-z]+")
_MAX_NESTING = 3


@dataclass
class Secret:
    """One value, decoded, and the placeholder of the same length that stands for it.

    ``names`` are the parameters that it was found under; ``bare`` says that it is replaced
    wherever it stands, not only after such a name.
    """

    value: bytes
    placeholder: bytes
    kind: str
    bare: bool
    names: set[bytes] = field(default_factory=set)


class Scrubber:
    """All secrets of one recording: learn them all, then replace."""

    def __init__(self) -> None:
        self.secrets: dict[bytes, Secret] = {}
        self._taken: dict[bytes, int] = {}
        self._patterns: list[tuple[bytes, re.Pattern[bytes], Secret]] | None = None

    def learn_url(self, text: str) -> None:
        """Take the secrets of a URL, or of a header that holds URLs, into the list."""
        raw = text.encode("utf-8", "surrogateescape")
        if found := _USER.match(raw):
            self._add(b"", unquote_to_bytes(found[1]), "user information", bare=False)
        for name, value in _parameters(raw, _MAX_NESTING):
            text_value = value.decode("utf-8", "replace")
            verdict = judge(name.decode("utf-8", "replace"), text_value)
            if verdict is not None:
                bare = verdict != "name" or is_distinctive(text_value)
                self._add(name, value, verdict, bare=bare)

    def learn_value(self, value: str) -> None:
        """Take the value of a removed header into the list, if it means only itself."""
        if len(value) >= 16 and is_distinctive(value):
            self._add(b"", unquote_to_bytes(value), "header", bare=True)

    def replace(self, data: bytes) -> bytes:
        """``data`` with a placeholder for every secret; as long as before."""
        return self._replace(data, search=True)

    def replace_text(self, text: str, *, thorough: bool = True) -> str:
        """The same for a string; ``thorough`` also finds values whose every letter is escaped."""
        raw = text.encode("utf-8", "surrogateescape")
        return self._replace(raw, search=not thorough).decode("utf-8", "surrogateescape")

    def count_kinds(self) -> dict[str, int]:
        """How many secrets there are of each kind."""
        return dict(Counter(secret.kind for secret in self.secrets.values()))

    def _replace(self, data: bytes, *, search: bool) -> bytes:
        if self._patterns is None:
            self._patterns = self._compile()
        for anchor, pattern, secret in self._patterns:
            # Looking for plain bytes first is a hundred times faster on large bodies.
            if not search or anchor in data:
                data = pattern.sub(partial(_rewrite, secret), data)
        return data

    def _add(self, name: bytes, value: bytes, kind: str, *, bare: bool) -> None:
        self._patterns = None
        secret = self.secrets.get(value)
        if secret is None:
            if not _ALNUM.search(value):
                return
            secret = Secret(value, self._placeholder(value), kind, bare)
            self.secrets[value] = secret
        secret.bare = secret.bare or bare
        if name:
            secret.names.add(name)

    def _placeholder(self, value: bytes) -> bytes:
        """Letters and digits give way to one character, and different values stay different."""
        fill = b"x" if re.search(rb"[A-Za-z\x80-\xff]", value) else b"0"
        blank = re.sub(rb"[0-9A-Za-z\x80-\xff]", fill, value)
        number = self._taken[blank] = self._taken.get(blank, -1) + 1
        if not number:
            return blank
        out = bytearray(blank)
        places = [at for at, byte in enumerate(out) if byte == fill[0]]
        digits = str(number).encode()
        for at, digit in zip(reversed(places), reversed(digits), strict=False):
            out[at] = digit
        return bytes(out)

    def _compile(self) -> list[tuple[bytes, re.Pattern[bytes], Secret]]:
        """For each secret, the longest first: bytes that it cannot be without, and its pattern."""
        ordered = sorted(
            self.secrets.values(), key=lambda secret: (-len(secret.value), secret.value)
        )
        return [
            (max(_ALNUM.findall(secret.value), key=len), _pattern(secret), secret)
            for secret in ordered
        ]


def _parameters(raw: bytes, nesting: int) -> Iterator[tuple[bytes, bytes]]:
    """Names and decoded values of a URL's parameters, and of URLs that are values themselves."""
    for pattern in _PARAMETERS:
        for name, value in pattern.findall(raw):
            decoded = unquote_to_bytes(value)
            yield unquote_to_bytes(name), decoded
            if nesting:
                yield from _parameters(decoded, nesting - 1)


def _pattern(secret: Secret) -> re.Pattern[bytes]:
    value = b"".join(map(_forms, secret.value))
    if secret.bare:
        return re.compile(b"()" + value)
    if not secret.names:
        return re.compile(b"(//)" + value + rb"(?=@|%40)")
    names = b"|".join(b"".join(map(_forms, name)) for name in sorted(secret.names))
    quote = rb"(?:\\?[\"']|&quot;|&#39;|%22)?"
    equals = rb"\s*(?:[=:]|%3[AaDd]|%253[AaDd]|\\u003[AaDd]|\\x3[AaDd]|&#x3[AaDd];|&#61;)\s*"
    return re.compile(
        b"((?:" + names + b")" + quote + equals + quote + b")" + value + b"(?![0-9A-Za-z])"
    )


def _forms(byte: int) -> bytes:
    """A pattern for all the ways to write one byte of a value."""
    char = bytes((byte,))
    code = b"%02x" % byte
    either = b"".join(b"[%c%c]" % (c, c - 32) if 97 <= c <= 102 else b"%c" % c for c in code)
    if _ALNUM.fullmatch(char):
        return b"(?:" + char + b"|%(?:25)?" + either + b")"
    forms = [re.escape(char), rb"%(?:25)?" + either]
    if byte < 128:
        forms += [rb"\\u00" + either, rb"\\x" + either, b"&#x" + either + b";", b"&#0?%d;" % byte]
    forms += {b"/": [rb"\\/"], b"&": [b"&amp;"], b" ": [rb"\+"]}.get(char, [])
    return b"(?:" + b"|".join(reversed(forms)) + b")"


def _rewrite(secret: Secret, match: re.Match[bytes]) -> bytes:
    """The placeholder, written as the value was: escapes of punctuation stay as they are."""
    each = re.compile(b"".join(b"(%s)" % _forms(byte) for byte in secret.value), re.DOTALL)
    written = each.fullmatch(match[0], len(match[1]))
    assert written is not None, "the same pattern has just matched"  # noqa: S101
    out = [match[1]]
    for form, byte in zip(written.groups(), secret.placeholder, strict=True):
        char = bytes((byte,))
        if not _ALNUM.fullmatch(char):
            out.append(form)
        elif len(form) == 1:
            out.append(char)
        else:
            out.append(form[:-2] + b"%02x" % byte)
    return b"".join(out)
