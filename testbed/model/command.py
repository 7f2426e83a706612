"""Command of a user's own: its words, and the placeholders in them.

A command takes the client's place in a page load (``client = "command"``), or runs by itself in the
lab of a page load, which is a kind of trial.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

CLIENT = "command"
"""The name of the client that is a command."""
FOLDER = "folder"
"""The placeholder of the user's own files, where a trial finds them."""
LOAD_PLACEHOLDERS = {
    "url": "the page's address",
    "urls": "a file with the addresses of the page's resources, one a line, the page's first",
    "ca": "a PEM file with the only authority to trust; /dev/null for a page without TLS",
    "out": "a folder for files to keep",
    FOLDER: "the files of command_folder",
    "scratch": "an empty folder, which is the working directory",
    "seed": "the trial's seed",
    "timeout_s": "after how many seconds the command is given up",
    "protocol": "what https origins speak: as-recorded, h1 or h2",
    "tls_version": "the only version of TLS: 1.3 or 1.2",
}
"""The placeholders of a command, and what they stand for."""
LAB_PLACEHOLDERS = LOAD_PLACEHOLDERS | {
    "client": "the client's address",
    "server": "the server's address, at which nothing listens but what you start",
    "tag": "what the names of the lab's network namespaces begin with, before client or server",
}
"""Those of a command that runs by itself."""
# Not %{name} nor ${name}: those are the command's own (curl's --write-out, a shell's).
_PLACEHOLDER = re.compile(r"(?<![%$\w])\{([a-z_]+)\}")


def split_words(command: str) -> tuple[str, ...]:
    """Split a command into its words as a shell does; no shell runs, so nothing is expanded.

    Raises:
        ValueError: a quotation does not end, or there is no word.
    """
    words = tuple(shlex.split(command))
    if not words:
        raise ValueError("no word in it")
    return words


def placeholders_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in braces, each once, in their order."""
    return tuple(dict.fromkeys(name for word in words for name in _PLACEHOLDER.findall(word)))


def fill_words(words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """Put ``values`` in place of their names in braces; other braces are left as they are."""
    return tuple(
        _PLACEHOLDER.sub(lambda placeholder: values.get(placeholder[1], placeholder[0]), word)
        for word in words
    )
