"""Text in two exact sizes at once, with its fixed parts where the weights put them."""

from __future__ import annotations

import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wings.pages.synthesis.filler import (
    BLOCK,
    HTML,
    JSON,
    Fill,
    Template,
    TooSmallError,
    filler,
    write_gzipped,
    write_identity,
)

TEMPLATE: Template = [b"<one>", Fill(0.25), b"<two>", Fill(0.75), b"<three>"]
COMMENT = re.compile(rb"<!--[A-Za-z0-9._]*-->| *")


@given(st.integers(17, 5000))
def test_identity_is_as_long_as_asked(size: int) -> None:
    body = write_identity(TEMPLATE, HTML, size, "seed")
    assert len(body.data) == body.decoded_size == size
    assert not body.gzipped
    fills = re.fullmatch(rb"<one>(.*)<two>(.*)<three>", body.data)
    assert fills is not None
    assert all(COMMENT.fullmatch(fill) for fill in fills.groups())


@given(st.integers(100, 200_000), st.data())
def test_both_sizes_are_exact(decoded: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(max(80, decoded // 120 + 60), decoded + 60))
    body = write_gzipped(TEMPLATE, HTML, decoded, size, "seed")
    text = zlib.decompress(body.data, 31)
    assert (len(body.data), len(text), body.decoded_size) == (size, decoded, decoded)
    fills = re.fullmatch(rb"<one>(.*)<two>(.*)<three>", text)
    assert fills is not None
    assert all(COMMENT.fullmatch(fill) for fill in fills.groups())


def test_parts_stand_at_their_share_of_the_compressed_bytes_too() -> None:
    body = write_gzipped(TEMPLATE, HTML, 200_000, 40_000, "seed")
    arrived = zlib.decompressobj(31).decompress(body.data[:10_000])
    assert zlib.decompress(body.data, 31).index(b"<two>") == pytest.approx(50_000, rel=0.01)
    assert len(arrived) == pytest.approx(50_000, rel=0.03)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 50, 5000])
def test_json_filler_parses(size: int) -> None:
    json.loads(write_identity([Fill()], JSON, size, "seed").data)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 50])
def test_script_filler_is_a_comment_or_blank(size: int) -> None:
    data = write_identity([Fill()], BLOCK, size, "seed").data
    assert re.fullmatch(rb" *|/\*[A-Za-z0-9._]+\*/", data)


def test_fixed_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TooSmallError, match="17 bytes of fixed text, 16 recorded"):
        write_identity(TEMPLATE, HTML, 16, "seed")
    with pytest.raises(TooSmallError, match="cannot be compressed"):
        write_gzipped(TEMPLATE, HTML, 1_000_000, 3000, "seed")


def test_filler_depends_on_its_seed_alone() -> None:
    assert filler("amazon/1", 12) == filler("amazon/1", 100)[:12]
    assert filler("amazon/1", 100) != filler("amazon/2", 100)
