"""Words of a configuration: what is quoted stays in its quotes and reads back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.server.quoting import Constants, quote

CHARACTERS = st.characters(min_codepoint=0x20, max_codepoint=0xFF)
TEXTS = st.text(CHARACTERS, max_size=40)


def unquote(word: str) -> str:
    """What nginx reads of a word in double quotes (ngx_conf_read_token)."""
    assert word.startswith('"') and word.endswith('"')
    text, read, position = word[1:-1], "", 0
    while position < len(text):
        if text[position] == "\\" and text[position + 1 : position + 2] in {'"', "'", "\\"}:
            position += 1
        else:
            assert text[position] != '"', "the quotes end here"
            assert text[position : position + 2] not in (r"\t", r"\r", r"\n")
        read += text[position]
        position += 1
    return read


@given(text=TEXTS)
def test_a_word_reads_back(text: str) -> None:
    assert unquote(quote(text)) == text


@given(before=TEXTS, bad=st.sampled_from("\n\r\0\x1b\u0100\ud800"))
def test_what_no_word_can_hold_is_refused(before: str, bad: str) -> None:
    with pytest.raises(ValueError, match="holds what no word can"):
        quote(before + bad)


def test_a_word_is_not_too_long() -> None:
    assert len(quote('"' * 2000)) == 4002
    with pytest.raises(ValueError, match="4002 bytes are too long"):
        quote('"' * 2001)


@given(
    text=st.one_of(TEXTS, st.text(st.sampled_from('a$"\\{}'), max_size=30).map(lambda t: t * 99))
)
def test_an_expanded_word_reads_back(text: str) -> None:
    constants = Constants()
    word = unquote(constants.word(text))
    values = {
        name: unquote(value)
        for name, value in re.findall(
            r'^  geo \$(\w+) \{ default (".*"); \}$', constants.definitions(), re.MULTILINE
        )
    }
    assert re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], word) == text
    assert "$" not in re.sub(r"\$\{\w+\}", "", word)


def test_equal_texts_share_a_constant() -> None:
    constants = Constants()
    assert constants.word("$a") == constants.word("$a") != constants.word("$b")
    assert constants.definitions().count("geo") == 2
