r"""Scrubber of recordings: finds secrets in URLs and replaces them in any text, however written.

A value of a URL can stand in a body as it is, percent-encoded (RFC 3986) once or twice, escaped
for HTML (``&amp;``) or for JSON and JavaScript (``\/``, ``\u0026``, ``\x26``).  Schemes and hosts
are never replaced, neither alone nor within a value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote_to_bytes

from testbed.base.errors import ConfigurationError
from wings.pages.redaction.rules import (
    find_personal,
    header_tokens,
    is_distinctive,
    judge,
    path_tokens,
)

MOST_LOOKS = 10_000_000
"""How often a place in a text is compared with a secret; a large page has 50,000 such."""

_PARAMETERS = (
    re.compile(rb"(?:^|[?&#](?:amp;)?)([^=&;#?/\s\"'<>]{1,80})=([^&#\s\"'<>;]+)"),
    re.compile(rb";([^=&;#?/\s\"'<>]{1,80})=([^&#\s\"'<>;?/]+)"),  # of a path: ;jsessionid=1
)
_USER = re.compile(rb"^[a-z][a-z0-9+.-]*://([^/?#@\s]+)@", re.IGNORECASE)
_PATHS = re.compile(rb"(?:^|//[^/?#\s\"'<>]*)(/[^?#\s\"'<>]*)")
_ALNUM = re.compile(rb"[0-9A-Za-z]+")
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_BLANK = re.compile(rb"[^0-9A-Za-z]*|.*x{8}[0-9a-z]{0,4}[^0-9A-Za-z]*", re.DOTALL)
_SCHEMES = re.compile(rb"(?:https?|wss?|ftp)(?=://)|(?<=//)[^/?#@\s\"'<>]+(?=[/?#]|$)")
_ESCAPED_ALNUM = rb"%(?:25)?(?:[89A-Fa-f][0-9A-Fa-f]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
_ESCAPE = rb"%(?:25)?[0-7][0-9A-Fa-f]|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrtbfv])|&#?\w{1,8};"
_QUOTE = rb"(?:\\?[\"']|&quot;|&#39;|%22)?"
_EQUALS = rb"\s*(?:[=:]|%3[AaDd]|%253[AaDd]|\\u003[AaDd]|\\x3[AaDd]|&#x3[AaDd];|&#61;)\s*"
# Not within a longer word, nor within an escape; after an escape is well.
_START = rb"(?<!%)(?<!%[0-9A-Fa-f])(?:(?<![0-9A-Za-z])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrtbfv]))"
_BEFORE_HOST = re.compile(rb"(?://|\\/\\/|%2[Ff]%2[Ff]|%252[Ff]%252[Ff])[\w.~-]*\Z")
_AFTER_HOST = re.compile(rb"[\w~-]*(?:\.[\w.~-]*[A-Za-z])?(?![\w.~-])(?!@|:[^/\s]*@|%40)")
_LONGEST_HOST = 255
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_DIGITS = b"x1234567890abcdefghijklmnopqrstuvwyz"
_MAX_NESTING = 3
_BARE = frozenset({"shape", "e-mail address"})


@dataclass(eq=False)
class Secret:
    """One value, decoded, and the placeholder of the same length that replaces it.

    ``names`` are the parameters that it was found under; ``bare`` says that it is replaced
    wherever it is found, not only after such a name.
    """

    value: bytes
    kind: str
    bare: bool
    names: set[bytes] = field(default_factory=set)
    placeholder: bytes = b""


class Scrubber:
    """All secrets of one recording: learn them all, then replace.

    ``hosts`` are its hosts, ``public`` the URLs of files that anybody gets.
    """

    def __init__(self, hosts: Iterable[str] = (), public: Iterable[str] = ()) -> None:
        self.secrets: dict[bytes, Secret] = {}
        names = {name for host in hosts for name in _with_domains(host.lower().encode())}
        self._hosts = sorted(names, key=len, reverse=True)
        self._public = {path for url in public for path in _PATHS.findall(url.encode())}
        self._index: _Index | None = None

    def learn_url(self, text: str) -> None:
        """Take the secrets of a URL, or of a header that holds URLs, into the list."""
        raw = text.encode("utf-8", "surrogateescape")
        if user_match := _USER.match(raw):
            self._add(b"", unquote_to_bytes(user_match[1]), "user information", bare=False)
        self._learn(raw, _MAX_NESTING)

    def learn_value(self, value: str) -> None:
        """Take the value of a removed header into the list, as far as it means only itself."""
        raw = unquote_to_bytes(unquote_to_bytes(value.encode("utf-8", "surrogateescape")))
        for token in header_tokens(raw.decode("utf-8", "replace")):
            self._add(b"", token.encode(), "header", bare=True)
        self._learn(raw, _MAX_NESTING - 1)

    def learn_form(self, value: bytes) -> None:
        """Take what a body names by its form into the list: of several lines each one."""
        for line in re.split(rb"\s+|\\[nr]", value):
            if not _BLANK.fullmatch(line):
                self._add(b"", line, "form", bare=True)

    def replace(self, data: bytes) -> bytes:
        """Return ``data`` with a placeholder for every secret; as long as before.

        Raises:
            ConfigurationError: searching would take hours.
        """
        if not self.secrets:
            return data
        if self._index is None:
            self._index = _Index(self.secrets.values(), self._hosts)
        return self._index.replace(data)

    def replace_text(self, text: str) -> str:
        """Return the same for a string."""
        raw = text.encode("utf-8", "surrogateescape")
        return self.replace(raw).decode("utf-8", "surrogateescape")

    def count_kinds(self) -> dict[str, int]:
        """Return how many secrets there are of each kind."""
        return dict(Counter(secret.kind for secret in self.secrets.values()))

    def _learn(self, raw: bytes, nesting: int) -> None:
        """Take the parameters and the paths of a URL, and of URLs that are values themselves."""
        for path in _PATHS.findall(raw):
            text = unquote_to_bytes(path).decode("utf-8", "replace")
            for token in path_tokens(text, is_public=path in self._public):
                self._add(b"", token.encode(), "path", bare=True)
            self._learn_personal(text)
        for name, value in _parameters(raw):
            text = value.decode("utf-8", "replace")
            verdict = judge(name.decode("utf-8", "replace"), text)
            if verdict is not None:
                bare = verdict in _BARE or is_distinctive(text)
                self._add(name, value, verdict, bare=bare)
            else:
                self._learn_personal(text)
            if nesting:
                self._learn(value, nesting - 1)

    def _learn_personal(self, text: str) -> None:
        for kind, number in find_personal(text):
            self._add(b"", number.encode(), kind, bare=True)

    def _add(self, name: bytes, value: bytes, kind: str, *, bare: bool) -> None:
        if not _WORD.search(value):
            return
        lower = value.lower()
        if any(lower in host for host in self._hosts):
            bare = False  # it would be found in the host as well
            if lower in self._hosts or not (name or kind == "user information"):
                return
        self._index = None
        secret = self.secrets.setdefault(value, Secret(value, kind, bare))
        secret.bare = secret.bare or bare
        if name:
            secret.names.add(name)


class _Index:
    """Finds all secrets in one pass, by a run of letters and digits that each has."""

    def __init__(self, secrets: Iterable[Secret], hosts: list[bytes]) -> None:
        all_secrets = list(secrets)
        _give_placeholders(all_secrets, hosts)
        shared = Counter(run for secret in all_secrets for run in set(_WORD.findall(secret.value)))
        self._by_anchor: defaultdict[bytes, list[_Finder]] = defaultdict(list)
        for secret in all_secrets:
            if secret.placeholder != secret.value:
                words = _WORD.finditer(secret.value)
                anchor = min(words, key=lambda run: (shared[run[0]], -len(run[0])))
                self._by_anchor[anchor[0]].append(_Finder(secret, *anchor.span()))
        shortest = min(map(len, self._by_anchor), default=1)
        run = rb"((?:[0-9A-Za-z\x80-\xff]|" + _ESCAPED_ALNUM + rb"){%d,})" % shortest
        self._runs = re.compile(run + b"|" + _ESCAPE)
        self._looks = 0

    def replace(self, data: bytes) -> bytes:
        edits = sorted(self._edits(data), key=lambda edit: (edit[0] - edit[1], edit[0]))
        if not edits:
            return data
        out, replaced = bytearray(data), bytearray(len(data))
        for start, end, text in edits:
            if not any(replaced[start:end]):
                out[start:end] = text
                replaced[start:end] = b"\1" * (end - start)
        return bytes(out)

    def _edits(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield start, end and new text of everything that is to be replaced; they may overlap."""
        for run in self._runs.finditer(data):
            text: bytes | None = run[1]
            if text is None:
                continue
            if b"%" in text:
                text = unquote_to_bytes(unquote_to_bytes(text))
            for finder in self._by_anchor.get(text, ()):
                self._looks += 1
                if self._looks > MOST_LOOKS:
                    raise ConfigurationError(
                        ["there are too many values that may be secret, and too many places where "
                         "they may stand; give --anonymize or --keep-secrets, or import fewer "
                         "requests"]
                    )  # fmt: skip
                span = finder.find(data, run.start(), run.end())
                if span is not None and not _is_host(data, *span):
                    yield *span, finder.rewrite(data[slice(*span)])


class _Finder:
    """Finds one secret, given where its anchor is; patterns are made when needed."""

    def __init__(self, secret: Secret, start: int, end: int) -> None:
        self._secret = secret
        self._prefix, self._suffix = secret.value[:start], secret.value[end:]
        names = max(map(len, secret.names), default=0)
        self._reach = 6 * (len(self._prefix) + names) + 40

    def find(self, data: bytes, start: int, end: int) -> tuple[int, int] | None:
        if self._secret.bare and not self._prefix and not self._suffix:
            return start, end
        before = self._before.search(data, max(0, start - self._reach), start)
        if before is None:
            return None
        after = self._after.match(data, end)
        return None if after is None else (before.start(1), after.end())

    def rewrite(self, written: bytes) -> bytes:
        """Return the placeholder, written as the value is: escapes of punctuation stay."""
        if written == self._secret.value:
            return self._secret.placeholder
        forms = self._each.fullmatch(written)
        assert forms is not None, "the same pattern has just matched"  # noqa: S101
        out = []
        for form, byte in zip(forms.groups(), self._secret.placeholder, strict=True):
            char = bytes((byte,))
            if not _ALNUM.fullmatch(char):
                out.append(form)
            elif len(form) == 1:
                out.append(char)
            else:
                out.append(form[:-2] + b"%02x" % byte)
        return b"".join(out)

    @cached_property
    def _before(self) -> re.Pattern[bytes]:
        value = b"(" + b"".join(map(_forms, self._prefix)) + rb")\Z"
        if self._secret.bare:
            return re.compile((_START if self._prefix else b"") + value)
        if not self._secret.names:
            return re.compile(rb"(?://|%2[Ff]%2[Ff])" + value)
        names = b"|".join(b"".join(map(_forms, name)) for name in sorted(self._secret.names))
        return re.compile(b"(?:" + names + b")" + _QUOTE + _EQUALS + _QUOTE + value)

    @cached_property
    def _after(self) -> re.Pattern[bytes]:
        value = b"".join(map(_forms, self._suffix))
        is_user = not self._secret.bare and not self._secret.names
        return re.compile(value + (rb"(?=@|%40)" if is_user else rb"(?![0-9A-Za-z])"))

    @cached_property
    def _each(self) -> re.Pattern[bytes]:
        forms = b"".join(b"(%s)" % _forms(byte) for byte in self._secret.value)
        return re.compile(forms, re.DOTALL)


def _give_placeholders(secrets: Iterable[Secret], hosts: list[bytes]) -> None:
    """Give each secret a text of its length and punctuation, another one for each value.

    One for which none is left keeps its value.
    """
    taken: Counter[bytes] = Counter()
    for secret in secrets:
        value = secret.value
        # A number stays one, and none begins with 0, which JSON and JavaScript refuse.
        fill, digits = (b"x", _DIGITS) if _LETTER.search(value) else (b"1", b"1234567890")
        fixed_places = {at for span in _kept(value, hosts) for at in range(*span)}
        words = (at for run in _WORD.finditer(value) for at in range(*run.span()))
        places = [at for at in words if at not in fixed_places]
        out = bytearray(value)
        for at in places:
            out[at] = fill[0]
        blank = bytes(out)
        number = taken[blank]
        taken[blank] += 1
        for at in reversed(places):
            number, digit = divmod(number, len(digits))
            out[at] = digits[digit]
        secret.placeholder = value if number else bytes(out)


def _kept(value: bytes, hosts: list[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where schemes and hosts are in a value: they stay."""
    yield from (scheme.span() for scheme in _SCHEMES.finditer(value))
    lower = value.lower()
    for host in hosts:
        at = lower.find(host)
        while at >= 0:
            end = at + len(host)
            around = value[max(at - 1, 0) : at] + value[end : end + 1]
            if not _ALNUM.search(around):
                yield at, end
            at = lower.find(host, at + 1)


def _with_domains(host: bytes) -> Iterator[bytes]:
    """Yield the host's name and those of the domains that it is in, but of the top one."""
    while host:
        yield host
        host = host.partition(b".")[2]
        if b"." not in host:
            return


def _parameters(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    for pattern in _PARAMETERS:
        for name, value in pattern.findall(raw):
            yield unquote_to_bytes(name), unquote_to_bytes(value)


def _is_host(data: bytes, start: int, end: int) -> bool:
    before = _BEFORE_HOST.search(data, max(0, start - _LONGEST_HOST), start)
    if before is None:
        return False
    after = _AFTER_HOST.match(data, end)
    return after is not None and (b"." in before[0] or b"." in after[0])


def _forms(byte: int) -> bytes:
    """Return a pattern for all the ways to write one byte of a value."""
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
