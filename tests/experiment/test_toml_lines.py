from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from testbed.experiment.toml_lines import find_lines, locate

TEXT = '''# a comment
title = "one" # not = here

[link]
rtt_ms = 20
"odd key" = """
[tcp]
tfo = true
"""
dotted.key = [
  1,  # x = 2
  2,
]
[sweep]
page = ["a", "b"]
inline = { x = 1, y = 2 }
'''


def test_each_key_has_its_line() -> None:
    tomllib.loads(TEXT)
    assert find_lines(TEXT) == {
        ("title",): 2,
        ("link",): 4,
        ("link", "rtt_ms"): 5,
        ("link", "odd key"): 6,
        ("link", "dotted"): 10,
        ("link", "dotted", "key"): 10,
        ("sweep",): 14,
        ("sweep", "page"): 15,
        ("sweep", "inline"): 16,
    }


def test_a_key_inside_a_value_is_on_the_line_of_its_owner() -> None:
    lines = find_lines(TEXT)
    assert locate(lines, ("sweep", "inline", "y")) == 16
    assert locate(lines, ("nowhere",)) is None


keys = st.text("abcdefgh_-", min_size=1, max_size=8)
values = st.sampled_from(["1", '"a = b"', "[1,\n 2]", '"""\n[x]\ny = 1\n"""', "{ z = 1 }"])
tables = st.dictionaries(keys, st.dictionaries(keys, values, max_size=4), max_size=4)


@given(tables, st.lists(st.sampled_from(["", "# c = 1"]), max_size=3))
def test_lines_hold_in_any_document(document: dict[str, dict[str, str]], noise: list[str]) -> None:
    rows: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    for table, entries in document.items():
        rows += noise
        expected[(table,)] = len(rows) + 1
        rows.append(f"[{table}]")
        for key, value in entries.items():
            rows += noise
            expected[(table, key)] = len(rows) + 1
            rows += f"{key} = {value}".split("\n")
    text = "\n".join(rows)
    tomllib.loads(text)
    assert find_lines(text) == expected
