"""Quoting for nginx configurations: whatever is in a word stays in it.

Source: nginx's ngx_conf_file.c, ngx_conf_read_token().  A configuration is written as Latin-1: one
character is one byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_WORD = 4000
"""Bytes between the quotes; nginx reads pieces of 4096 and takes no word that fills one."""
_PIECE = 1900  # doubled by escapes, and it still is a word


def quote(text: str) -> str:
    """Return ``text`` as one word, for places where nginx knows no variables.

    Raises:
        ValueError: no word can hold it.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if len(escaped) > LONGEST_WORD:
        raise ValueError(f"{len(escaped)} bytes are too long for a word: {text[:60]}...")
    if not all(char == "\t" or " " <= char <= "\xff" for char in text):
        raise ValueError(f"{text[:60]!r} holds what no word can")
    return f'"{escaped}"'


@dataclass(slots=True)
class Constants:
    """Texts for places where nginx reads ``$`` as a variable and has no way to write the sign.

    What has a dollar sign or is too long for a word becomes variables of constant value: ``geo``
    takes its values as they are.
    """

    _names: dict[str, str] = field(default_factory=dict)

    def word(self, text: str) -> str:
        """Return a word that nginx expands to ``text``.

        Raises:
            ValueError: no word can hold it.
        """
        if "$" not in text and len(text) <= _PIECE:
            return quote(text)
        pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
        return quote("".join(f"${{{self._name(piece)}}}" for piece in pieces))

    def definitions(self) -> str:
        """Return the blocks that define the constants; they belong in ``http``."""
        return "".join(
            f"  geo ${name} {{ default {quote(piece)}; }}\n" for piece, name in self._names.items()
        )

    def _name(self, piece: str) -> str:
        return self._names.setdefault(piece, f"constant_{len(self._names)}")
