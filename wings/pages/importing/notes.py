"""Notes on what an import repaired or left out: counted, with examples, a sentence for each."""

from __future__ import annotations

from collections import Counter, defaultdict

EXAMPLES = 3
_LONGEST_NOTE = 100


class Notes:
    """Collects what happened; the sentences come in the order of the first of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, what: str, example: str = "") -> None:
        """Count ``what``; ``example`` says where, and is kept if it is one of the first."""
        self._counts[what] += 1
        examples = self._examples[what]
        shown = printable(example)
        if shown and len(examples) < EXAMPLES and shown not in examples:
            examples.append(shown)

    def join(self, others: Notes) -> None:
        """Add what ``others`` has, as if it had been added here."""
        self._counts.update(others._counts)
        for what, more in others._examples.items():
            examples = self._examples[what]
            examples += [shown for shown in more if shown not in examples]
            del examples[EXAMPLES:]

    def sentences(self) -> tuple[str, ...]:
        """Return ``Requests left out, file: URLs: 3 (file:///a, file:///b, ...).`` and so on."""
        sentences = []
        for what, count in self._counts.items():
            examples = self._examples[what]
            more = ", ..." if examples and count > len(examples) else ""
            shown = f" ({', '.join(examples)}{more})" if examples else ""
            sentences.append(f"{what}: {count}{shown}.")
        return tuple(sentences)


def printable(text: str, longest: int = _LONGEST_NOTE) -> str:
    """Return ``text`` in printable ASCII and not too long, so that a terminal can show it."""
    plain = text[:longest].encode("ascii", "backslashreplace").decode()
    shown = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in plain)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."
