"""No number that was measured stands in a page, unless `make readme` wrote it from results.

What a program writes is between two comments.  Of all else these are taken for measurements: a
percentage, a signed number or a fraction with a unit, how many of how many, and rows of numbers.
Words in quotation marks are a source's; code is what one types.  Limits that the code keeps,
targets and definitions are listed here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_repository import GENERATED, GENERATED_BLOCK, TEXTS

LIMITS = {
    "README.md": ("within 0.1 %",),
    "docs/accuracy.md": (
        "| 0.1 % |", "| 1 % |", "| 20 of 20 |", "| 100 % exact |", "| 1.6 times |", "1.4 GB of",
        "| 0.5 s |", "| 0.3 ms mean,", "| 2 %, 0.5 s |", "`graph` 0.1 ms,", "than 0.25 ms",
        "within 0.1 ms", "within 0.1 %",
    ),
    "docs/compare.md": ("the 95 % interval", "0.1 % of BASE's", "1 % on the host's"),
    "docs/decisions/host-kernel.md": ("during 20 % of", "during 5 % of"),
    "docs/decisions/statistics.md": ("of 95 %", "exceeds 1 % by"),
    "docs/glossary.md": ("confidence of 95 %",),
    "docs/host-kernel.md": ("within 0.5 ms", "within 1 %"),
    "docs/many-machines.md": ("2 % of the entries taken",),
    "docs/nightly.md": ("0.1 % or more",),
    "docs/shell.md": ("within 0.5 ms", "within 1 %"),
    "docs/visitor.md": ("begins for 0.5 s",),
    "wings/kernels/README.md": (
        "5 % or more", "than 0.1 ms", "by 0.1 ms or more", "95 % interval", "94 % with five seeds",
        "0.1 % for", "0.9 % for", "2.7 % for",
    ),
    "wings/kernels/docs/netdev.md": ("some 0.3 GB",),
    "wings/pages/README.md": ("The median page has 2.6 MB",),
    "wings/papers/README.md": ("1.349 s is", "1.351 s is"),
    "wings/papers/docs/overload.md": ("at 1.5 times the capacity",),
    "wings/scenarios/README.md": ("within 5 %",),
    "wings/server_loads/README.md": ("by 20 % at most", "3 3.2 3.2 3.2"),
}  # fmt: skip
"""Of each page the limits, targets and definitions with a number, in its words."""

UNIT = r"(?:ms|µs|us|s|min|minutes|seconds|CPU-s|points|orders|KB|MB|GB|times)\b"
NUMBER = r"\d+(?:,\d{3})*"
MEASURED = re.compile(
    rf"{NUMBER}(?:\.\d+)? ?%"
    rf"|(?:[-+\u2212]{NUMBER}(?:\.\d+)?|{NUMBER}\.\d+|\d+,\d{{3}}) {UNIT}"
    r"|\b\d+ of \d+\b"
)
ROW = re.compile(
    r"-{3,}(\s+-{3,})+"  # the rule below a table's heads
    r"|.*?\s[-+\u2212]?\d+\.\d+\s+[-+\u2212]?\d+\.\d+\b.*"
    r"|.*?\s[-+\u2212]?\d[\d,.]*\s{2,}[-+\u2212]?\d[\d,.]*(\s.*)?"
    r"|\|.*\|\s*[-+\u2212]?\d[\d,.]*\s*\|\s*[-+\u2212]?\d[\d,.]*\s*\|.*"
)
TYPED = re.compile(r"^ {4}.*|```(?s:.*?)```|`[^`\n]*`", re.MULTILINE)
QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"")


def find_measured(text: str, limits: tuple[str, ...] = ()) -> list[str]:
    """Return what stands in a page's text like a measurement, and is none of its limits."""
    by_hand = GENERATED_BLOCK.sub("", text)
    for limit in limits:
        by_hand = by_hand.replace(limit, "")
    rows = [line for line in by_hand.splitlines() if ROW.fullmatch(line.strip())]
    prose = QUOTED.sub("", TYPED.sub("", by_hand))
    return rows + [match[0] for match in MEASURED.finditer(prose)]


PAGES = sorted(
    str(name) for name in TEXTS
    if name.suffix == ".md" and (name == Path("README.md") or name.parts[0] in ("docs", "wings"))
    and not (name.parts[0] == "docs" and name.name in GENERATED)
)  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_no_measured_number_is_written_by_hand(name: str) -> None:
    assert find_measured(TEXTS[Path(name)], LIMITS.get(name, ())) == [], (
        "let `make readme` write it from committed results, or say it without the number"
    )


def test_the_limits_are_those_of_the_pages() -> None:
    assert set(LIMITS) <= set(PAGES)
    assert [each for name, limits in LIMITS.items()
            for each in limits if each not in TEXTS[Path(name)]] == []  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Fast Open saves 7.7 % on ten links.",
        "| RACK | nothing | +7.5 % | 0 |",
        "amazon gains 19 %",
        "a mean of 1,421 ms",
        "It takes 0.45 s in the queue.",
        "holds in 36 of 36 cells",
        "differ by \u22124.4 to +7.0 points",
        "```\npage    off s\n------  -----\nwsj     1.0\n```",
        "```\nwith, %   14.2   28.4\n```",
        "```\nabort     793   859\n```",
        "    default  1623 1/s  860.2   553.12",
        "| FIFO, 32 KB | 2,155 | 1,096 | 142 |",
        "<!-- table: a -->\n1.0 %\n<!-- end -->\n1.0 %",
        "    ./run.sh\n\nIt took `1 s`, and 1.5 s.",
    ],
)
def test_a_measured_number_is_found(text: str) -> None:
    assert find_measured(text)


@pytest.mark.parametrize(
    "text",
    [
        "over 4 Mbit/s down and 256 kbit/s up at 100 ms",
        "<!-- table: a -->\n| 1.0 | 2.0 | +3.0 % |\n<!-- end -->",
        'The paper says "over 10 % on average".',
        "`loss_pct=1`: `1.5 s`",
        "    ./run.sh run configs/quick.toml --set loss_pct=0.1   # 6.1 and 6.12",
        "Linux 6.12 and 7.3, since 2018",
    ],
)
def test_what_one_sets_types_or_quotes_is_none(text: str) -> None:
    assert find_measured(text) == []
