"""Script of a scenario: calls of hosts, rules of a middlebox, and the packets that are expected.

One line is one thing, ``#`` begins a comment::

    server  listen s fastopen=16
    client  sendto a server "GET /"          # the call waits for its result
    client > server  [S] cookie=request      # a packet, in the order of sending
    server > client  [S.] cookie=new
    ...                                      # any packets
    client  recv a -> "hello"

What is expected of a packet is all that it has: a SYN without ``cookie=`` has no Fast Open option,
a segment without ``data=`` no payload.  PSH says nothing and is not compared.  ``=> lost``,
``=> twice`` or another segment says what arrives.  The packets of a script are those of its
captures, in order; only ``...`` skips any.  ``=> unreachable`` is a packet that is lost, and whose
sender is told by ICMP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.base.suggest import did_you_mean
from wings.scenarios.words import (
    ACTORS,
    ADDRESSES,
    ATTACKER,
    CALLS,
    COPIED,
    EARLY_MODES,
    OPTION_KINDS,
    PEERS,
    PREFIX,
    TARGETS,
    VERBS,
    WAIT,
    parse_data,
    parse_flags,
    parse_size,
    parse_time,
)

ANY = "..."
LOST, TWICE, REFUSED = "lost", "twice", "unreachable"
_TOKEN = re.compile(r'[^\s"#]*"(?:[^"\\]|\\.)*"|[^\s"#]+|#.*|"')
_COOKIES = ("request", "new", "cached", "none", "any")
_SOCKET = re.compile(r"[a-z][a-z0-9]{0,11}")
_ADDRESS = re.compile(r"203\.0\.113\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])")
_HEX = re.compile(r"(?:[0-9a-f]{2}){1,16}")
_TLS_RECORD = r"(client-hello|server-hello)(\+ticket)?(\+early)?|alert|sealed(\*\d+)?"
_FLIGHT = re.compile(rf"({_TLS_RECORD})(,({_TLS_RECORD}))*")
PREFIX_ADDRESSES = PREFIX.num_addresses
_SENDERS = (*ADDRESSES, ATTACKER)
_SOCKETS = ("LISTENER", "SOCKET")
_MAKING = ("listen", "accept", "connect", "sendto", "set")
"""Calls that make the last of their sockets."""


@dataclass(frozen=True, slots=True)
class Action:
    """A line that does something.

    ``words`` are those after the verb, ``options`` those of the form ``name=value``, and
    ``expected`` is what stands behind ``->``.
    """

    line: int
    text: str
    actor: str
    verb: str
    words: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """What a segment is expected to be.

    ``cookie`` is its Fast Open option: ``request`` (empty), ``new`` (not empty), ``cached`` (what
    its sender, or for an attacker any host, was given last), ``none``, ``any``, or hexadecimal
    digits.  ``data`` is how many bytes of payload, ``None`` any number.  ``ack`` is relative to the
    first sequence number of the other side.  ``having`` and ``lacking`` name options.  ``tls`` is
    its flight of TLS (``describe_flight``), ``None`` anything.
    """

    flags: int
    data: int | None = 0
    cookie: str = "none"
    ack: int | None = None
    having: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()
    tls: str | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """A packet that is expected next; ``segment`` of ``None`` skips any number of packets.

    ``arriving`` is how it arrives: as it was sent (``None``), ``lost``, ``twice``, ``unreachable``
    (lost, and its sender told), or changed.
    ``after_s`` is the time since the expected packet before it was sent, ``times`` how many such
    packets there are, one after the other.
    """

    line: int
    text: str
    sender: str = ""
    receiver: str = ""
    segment: Segment | None = None
    arriving: Segment | str | None = None
    after_s: float | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of a script: what is done, and what is expected on the wire, each in order."""

    actions: tuple[Action, ...]
    expectations: tuple[Expectation, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that take part, in the order of ``ADDRESSES``."""
        named = {action.actor for action in self.actions}
        named |= {w for action in self.actions for w in action.words if w in ADDRESSES}
        return tuple(host for host in ADDRESSES if host in named)

    @property
    def waits_s(self) -> float:
        """How long it waits at the least, in seconds."""
        return sum(
            parse_time(action.words[0]) or 0.0 for action in self.actions if action.actor == WAIT
        )


class ScriptError(ValueError):
    """Lines that are no lines of a script: ``problems`` has a sentence for each."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        """Keep ``problems``: the number of each line, from 1, and what is wrong with it."""
        super().__init__("\n".join(f"line {line}: {problem}" for line, problem in problems))
        self.problems = problems


class _WrongLineError(ValueError):
    """What is wrong with one line."""


def parse_script(text: str) -> Script:
    """Return the script that ``text`` is.

    Raises:
        ScriptError: with every line that is wrong.
    """
    actions: list[Action] = []
    expectations: list[Expectation] = []
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = _split(line)
            if not words:
                continue
            shown = " ".join(words)
            if words == [ANY]:
                expectations.append(Expectation(number, shown))
            elif len(words) > 2 and words[1] == ">" and words[0] in _SENDERS:
                expectations.append(_parse_expectation(number, shown, words))
            else:
                actions.append(_parse_action(number, shown, words))
        except _WrongLineError as error:
            problems.append((number, str(error)))
    problems += _unknown_sockets(actions) if not problems else []
    if problems:
        raise ScriptError(problems)
    return Script(tuple(actions), tuple(expectations))


def _split(line: str) -> list[str]:
    words = []
    for token in _TOKEN.finditer(line):
        word = token[0]
        if word == '"':
            raise _WrongLineError("a quotation mark has no partner")
        if not word.startswith("#"):
            words.append(word)
    return words


def _parse_action(number: int, text: str, words: list[str]) -> Action:
    actor, rest = words[0], words[1:]
    if actor not in ACTORS:
        near = did_you_mean(actor, ACTORS)
        raise _WrongLineError(
            f"{actor!r} is no actor{near}; a line begins with {', '.join(ACTORS)}, with a packet "
            f"(client > server [S]), or is {ANY}"
        )
    rest, expected = _cut_result(rest)
    if actor == WAIT:
        if len(rest) != 1 or parse_time(rest[0]) is None or expected is not None:
            raise _WrongLineError("wait takes a time, such as 250ms or 3s")
        return Action(number, text, WAIT, "", tuple(rest))
    verbs = VERBS[actor]
    if not rest or rest[0] not in verbs:
        given = f"{rest[0]!r} is nothing that {actor} can do" if rest else f"{actor} does nothing"
        near = did_you_mean(rest[0], verbs) if rest else ""
        raise _WrongLineError(f"{given}{near}; allowed: {', '.join(verbs)}")
    verb, declared = rest[0], verbs[rest[0]]
    settings = verb in ("set", "sysctl")  # their NAME=VALUE is what they are about
    options = {} if settings else dict(w.split("=", 1) for w in rest[1:] if _is_option(w))
    plain = [word for word in rest[1:] if settings or not _is_option(word)]
    unknown = sorted(options.keys() - declared.options)
    least, most = (1, 9) if settings else declared.words
    if unknown or not least <= len(plain) <= most:
        what = f"{unknown[0]}= is unknown to it" if unknown else f"it has {len(plain)} words"
        raise _WrongLineError(f"{verb}: {what}; usage: {actor} {verb} {declared.usage}".rstrip())
    if expected is not None and not declared.result:
        raise _WrongLineError(f"{verb} has no result; leave out -> {expected}")
    action = Action(number, text, actor, verb, tuple(plain), options, expected)
    _check_words(action)
    return action


def _cut_result(words: list[str]) -> tuple[list[str], str | None]:
    if "->" not in words:
        return words, None
    at = words.index("->")
    result = words[at + 1 :]
    if len(result) != 1:
        raise _WrongLineError('-> takes one result, such as ok, 20, "text", eof or EINPROGRESS')
    return words[:at], result[0]


def _is_option(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier() and not word.startswith('"')


def _check_words(action: Action) -> None:
    """Check the values of an action's words: here, and not in the middle of a trial.

    Raises:
        _WrongLineError: one is wrong.
    """
    words, verb = action.words, action.verb
    for name in ("within", "after", "by"):
        if name in action.options and parse_time(action.options[name]) is None:
            raise _WrongLineError(f"{name}= takes a time, such as 250ms or 3s")
    for name in ("port", "backlog", "fastopen", "from", "over", "times"):
        if name in action.options and not action.options[name].isdecimal():
            raise _WrongLineError(f"{name}= takes a whole number")
    if action.actor in ADDRESSES:
        _check_call(action)
    elif verb in ("nat", "farm"):
        if "address" in action.options and not _ADDRESS.fullmatch(action.options["address"]):
            raise _WrongLineError("address= takes an IPv4 address kept for documentation, such as "
                                  "203.0.113.7")  # fmt: skip
        for host in words:
            if host not in ADDRESSES:
                raise _WrongLineError(f"{verb} takes hosts: {', '.join(ADDRESSES)}")
    elif verb not in ("clear", "forget"):
        _check_packets(action)


def _check_call(action: Action) -> None:
    words, verb = action.words, action.verb
    for name in _sockets_of(action):
        if not _SOCKET.fullmatch(name):
            raise _WrongLineError(f"{name!r} is no name of a socket: small letters and digits")
    if verb in ("connect", "sendto") and words[1] not in TARGETS:
        raise _WrongLineError(f"{verb} takes a host: {', '.join(TARGETS)}")
    data = {"sendto": 2, "send": 1}.get(verb)
    copied = verb == "send" and words[1] == COPIED
    if data is not None and not copied and parse_data(words[data]) is None:
        raise _WrongLineError(f'{words[data]!r} is no data: "text", or a size such as 1000B')
    if verb == "recv" and len(words) > 1 and parse_size(words[1]) is None:
        raise _WrongLineError(f"{words[1]!r} is no size, such as 1000B")
    if "early" in action.options and parse_data(action.options["early"]) is None:
        raise _WrongLineError('early= takes data: "text", or a size such as 1000B')
    if verb == "early" and words[0] not in EARLY_MODES:
        raise _WrongLineError(f"early takes {', '.join(EARLY_MODES)}")
    if verb in ("window", "visit") and not words[0].isdecimal():
        raise _WrongLineError(f"{verb} takes a whole number")
    if verb == "visit" and int(words[0]) + int(action.options.get("from", 0)) > PREFIX_ADDRESSES:
        raise _WrongLineError(f"visit: the prefix has {PREFIX_ADDRESSES} addresses")
    if verb == "key" and not all(re.fullmatch(r"[0-9a-f]{32}", key) for key in words):
        raise _WrongLineError("key takes 32 hexadecimal digits, and another 32 as a backup")


def _sockets_of(action: Action) -> list[str]:
    """Return the names of the sockets that a call is of, which its usage begins with."""
    usage = CALLS[action.verb].usage.split()
    return [name for what, name in zip(usage, action.words, strict=False) if what in _SOCKETS]


def _check_packets(action: Action) -> None:
    words = action.words
    at = words.index(">") if ">" in words else -1
    if at < 1 or len(words) < at + 2 or not {words[at - 1], words[at + 1]} <= PEERS.keys():
        raise _WrongLineError(f"{action.verb} takes FROM > TO, each of {', '.join(PEERS)}")
    before, behind = words[: at - 1], words[at + 2 :]
    if action.verb == "strip" and before[:1] and before[0] not in OPTION_KINDS:
        raise _WrongLineError(f"strip takes an option: {', '.join(OPTION_KINDS)}")
    if action.verb == "cookie" and before[:1] and not _HEX.fullmatch(before[0]):
        raise _WrongLineError("cookie takes 2 to 32 hexadecimal digits")
    if len(before) != (1 if action.verb in ("strip", "cookie") else 0):
        raise _WrongLineError(f"usage: {action.actor} {action.verb} "
                              f"{VERBS[action.actor][action.verb].usage}")  # fmt: skip
    if action.options.get("option", "mss") not in OPTION_KINDS:
        raise _WrongLineError(f"option= takes one of {', '.join(OPTION_KINDS)}")
    for word in behind:
        known = word == "data" or parse_flags(word) is not None
        if not known and not (action.actor == ATTACKER and parse_data(word) is not None):
            raise _WrongLineError(f"{word!r} is neither flags, such as [S], nor the word data")


def _unknown_sockets(actions: list[Action]) -> Iterator[tuple[int, str]]:
    """Yield a problem for each socket that is used before something makes it."""
    made: set[tuple[str, str]] = set()
    for action in actions:
        if action.actor not in ADDRESSES:
            continue
        used = _sockets_of(action)
        makes = [used.pop()] if action.verb in _MAKING else []
        for name in used:
            if (action.actor, name) not in made:
                yield action.line, f"{action.actor} has no socket {name!r} yet"
        made |= {(action.actor, name) for name in makes}


def _parse_expectation(number: int, text: str, words: list[str]) -> Expectation:
    sender, receiver = words[0], words[2]
    if receiver not in PEERS:
        raise _WrongLineError(f"{receiver!r} is no host; a packet is for {', '.join(PEERS)}")
    rest = words[3:]
    arriving: Segment | str | None = None
    if "=>" in rest:
        at = rest.index("=>")
        rest, how = rest[:at], rest[at + 1 :]
        rest += [word for word in how if word.startswith("times=")]
        how = [word for word in how if not word.startswith("times=")]
        arriving = how[0] if how in ([LOST], [TWICE], [REFUSED]) else _parse_segment(how)[0]
    segment, about = _parse_segment(rest)
    after = parse_time(about["after"]) if "after" in about else None
    if "after" in about and after is None:
        raise _WrongLineError("after= takes a time, such as 250ms or 3s")
    times = about.get("times", "1")
    if not times.isdecimal() or not 1 <= int(times) <= 1000:
        raise _WrongLineError("times= takes a whole number from 1 to 1000")
    return Expectation(
        number, text, sender, receiver, segment, arriving, after, int(times)
    )  # fmt: skip


def _parse_segment(words: list[str]) -> tuple[Segment, dict[str, str]]:
    """Return a segment, and the words that are about its time and number."""
    flags = parse_flags(words[0]) if words else None
    if flags is None:
        raise _WrongLineError("a packet has its flags as tcpdump prints them, such as [S] or [P.]")
    given: dict[str, str] = dict(word.partition("=")[::2] for word in words[1:])
    allowed = ("data", "cookie", "ack", "with", "without", "tls", "after", "times")
    unknown = [name for name in given if name not in allowed]
    if unknown:
        near = did_you_mean(unknown[0], allowed)
        raise _WrongLineError(f"{unknown[0]!r} says nothing of a packet{near}; "
                              f"allowed: {', '.join(allowed)}")  # fmt: skip
    cookie = given.get("cookie", "none")
    if cookie not in _COOKIES and not _HEX.fullmatch(cookie):
        raise _WrongLineError(f"cookie= takes {', '.join(_COOKIES)} or hexadecimal digits")
    for name in ("data", "ack"):
        known = (name, given.get(name)) == ("data", "any")
        if name in given and not known and not given[name].isdecimal():
            raise _WrongLineError(f"{name}= takes a whole number of bytes")
    tls = given.get("tls")
    if tls is not None and not _FLIGHT.fullmatch(tls):
        raise _WrongLineError("tls= takes records, such as client-hello+ticket+early,sealed*2")
    data = given.get("data", "any" if tls else "0")
    having, lacking = (_options(given.get(name)) for name in ("with", "without"))
    about = {name: value for name, value in given.items() if name in ("after", "times")}
    ack = int(given["ack"]) if "ack" in given else None
    return Segment(
        flags, None if data == "any" else int(data), cookie, ack, having, lacking, tls
    ), about  # fmt: skip


def _options(word: str | None) -> frozenset[str]:
    names = frozenset(word.split(",")) if word else frozenset()
    unknown = sorted(names - OPTION_KINDS.keys())
    if unknown:
        raise _WrongLineError(f"{unknown[0]!r} is no TCP option; {', '.join(OPTION_KINDS)}")
    return names
