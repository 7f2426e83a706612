"""DualPI2 in the words of tc-dualpi2(8), which iproute2 before 6.18 does not have.

Two queues, one for low-latency traffic (RFC 9332).  Source: include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from testbed.base.suggest import did_you_mean
from testbed.lab.link.words import quantity
from testbed.lab.rtnetlink import attribute, attributes, number_of

KIND = "dualpi2"
_SHARE = 256  # alpha and beta are in 256th of Hz


def _count(text: str) -> int:
    return int(text)


def _micros(text: str) -> int:
    return round(quantity(text, "s") * 1e6)


def _size(text: str) -> int:
    return round(quantity(text, "b"))


def _hertz(text: str) -> int:
    return round(float(text) * _SHARE)


_Number = tuple[int, str, Callable[[str], int], Callable[[int], str]]
_NUMBERS: dict[str, _Number] = {
    "limit": (1, "I", _count, "{}p".format),
    "memlimit": (2, "I", _size, "{}b".format),
    "target": (3, "I", _micros, lambda us: f"{us / 1000:g}ms"),
    "tupdate": (4, "I", _micros, lambda us: f"{us / 1000:g}ms"),
    "alpha": (5, "I", _hertz, lambda share: f"{share / _SHARE:.6f}"),
    "beta": (6, "I", _hertz, lambda share: f"{share / _SHARE:.6f}"),
    "step_packets": (7, "I", _count, "{}p".format),
    "step_thresh": (8, "I", _micros, lambda us: f"{us / 1000:g}ms"),
    "min_qlen_step": (9, "I", _count, "{}p".format),
    "coupling_factor": (10, "B", _count, str),
    "classic_protection": (13, "B", lambda text: int(text.removesuffix("%")), "{}%".format),
}
"""Attribute, how it is packed, and between a word and its number."""
_CHOICES = {
    11: {"overflow": 0, "drop_on_overload": 1},
    12: {"drop_dequeue": 0, "drop_enqueue": 1},
    14: {"l4s_ect": 1, "any_ect": 3},
    15: {"no_split_gso": 0, "split_gso": 1},
}


def encode(words: list[str]) -> bytes:
    """Return the options that ``words`` after the kind ask for.

    Raises:
        ValueError: a word is none of them, or has no value that can be read.
    """
    options, left = b"", iter(words)
    flags = {word: (kind, value) for kind, each in _CHOICES.items() for word, value in each.items()}
    for word in left:
        if word in flags:
            options += attribute(flags[word][0], bytes([flags[word][1]]))
        elif word not in _NUMBERS:
            known = [*_NUMBERS, *flags]
            raise ValueError(
                f'What is "{word}"?{did_you_mean(word, known)} {KIND} has {", ".join(known)}'
            )
        else:
            text = next(left, "")
            try:
                # The same word has a time or, as 4p, a number of packets (tc-dualpi2(8)).
                by_packets = word == "step_thresh" and text.endswith("p")
                name, text = ("step_packets", text[:-1]) if by_packets else (word, text)
                kind, size, read, _ = _NUMBERS[name]
                options += attribute(kind, struct.pack(f"={size}", read(text)))
            except (ValueError, struct.error):
                raise ValueError(f'Illegal "{word}": "{text}"') from None
    return options


def describe(options: bytes) -> str:
    """Return what ``options`` of the kernel say, in words that ``encode`` reads."""
    attrs = attributes(options)
    told = [KIND]
    for name, (kind, _, _, show) in _NUMBERS.items():
        if kind in attrs:
            told += ["step_thresh" if name == "step_packets" else name,
                     show(number_of(attrs[kind]))]  # fmt: skip
    for kind, choice in _CHOICES.items():
        value = number_of(attrs.get(kind, b"\xff"))
        told += [word for word, number in choice.items() if number == value]
    return " ".join(told)
