"""Changed experiment files and ``--set`` options: trials, or an error of the project's own.

``FIRSTFLIGHT_MUTATIONS`` says how many; the number of a mutation is its seed.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError, TestbedError
from testbed.base.places import CONFIGS
from testbed.experiment.config import load_experiment
from testbed.experiment.options import parse_override
from testbed.experiment.plan import plan_trials
from testbed.runner.prepare import read_catalogue
from tests.hallway import CATALOGUE

COUNT = int(os.environ.get("FIRSTFLIGHT_MUTATIONS", "300"))
TEXTS = tuple(path.read_text() for path in sorted(CONFIGS.glob("*.toml")))
VALUES = (
    "1", "-1", "0", "0.5", "1e400", "nan", "-inf", "true", '""', '"wsj"', '"graph"', "[]", "[1, 2]",
    '["wsj", "wsj"]', "[[1]]", "{}", "{a = 1}", "2024-05-06", "07:08:09", "9" * 400, "9" * 5000,
    "0x" + "f" * 9000, "[" * 2000 + "]" * 2000, r'"\u0000"', r'"\ud800"', '"../../etc/passwd"',
    '"' + "x" * 3000 + '"', "[\n1,\n2\n]", '"""\na\n"""', "'''\na''''", "list(range(9))", "é", "\0",
    f"[{','.join(map(str, range(1, 900)))}]", "1_000", "0o7", "+5", "100000000000000000000",
)  # fmt: skip
KEYS = (
    "page", "client", "rtt_ms", "link.rtt_ms", "sweep.rtt_ms", "sweep", "kernel.version", "seed",
    "repetitions", '"a b"', "a.b.c", "tcp", "title", "x", "'='", "initcwnd_segments", "mtu_bytes",
)  # fmt: skip
LINES = ("[sweep]", "[link]", "[[sweep]]", "[", "[a.b]", "#", "]", "}")
_ASSIGNMENT = re.compile(r"[\w. ]+=")


def make_mutation(number: int) -> tuple[str, list[str]]:
    """The text of a changed experiment file, and options that change it further."""
    chance = random.Random(number)  # noqa: S311
    lines = chance.choice(TEXTS).split("\n")
    for _ in range(chance.choice((1, 1, 2, 4))):
        _change(lines, chance)
    text = "\n".join(lines)
    if chance.random() < 0.1:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice("\0\r\"'[]{}=#é\u2028") + text[at + chance.randrange(3) :]
    count = chance.choice((0, 0, 1, 3))
    return text, [f"{chance.choice(KEYS)}={chance.choice(VALUES)}" for _ in range(count)]


def _change(lines: list[str], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    assigned = [n for n, line in enumerate(lines) if _ASSIGNMENT.match(line)]
    kind = chance.randrange(5)
    made = f"{chance.choice(KEYS)} = {chance.choice(VALUES)}"
    if kind == 0:
        lines.insert(at, chance.choice((made, *LINES)))
    elif kind == 1:
        lines[at] = ""
    elif kind == 2:
        lines.insert(at, chance.choice(lines))
    elif assigned:
        at = chance.choice(assigned)
        key = lines[at].partition("=")[0]
        lines[at] = made if kind == 3 else f"{key}= {chance.choice(VALUES)}"


def test_changed_experiments_end_in_trials_or_a_clear_error(tmp_path: Path) -> None:
    catalogue = read_catalogue()
    path = tmp_path / "trial.toml"
    ends: Counter[str] = Counter()
    for number in range(COUNT):
        text, sets = make_mutation(number)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            experiment = load_experiment(path, catalogue, [parse_override(one) for one in sets])
            assert plan_trials(experiment)
            ends["trials"] += 1
        except TestbedError as error:
            assert str(error).strip()
            ends["error"] += 1
        except Exception as error:
            raise AssertionError(f"mutation {number}: {error!r}: {sets}\n{text[:2000]}") from error
        assert [file.name for file in tmp_path.iterdir()] == ["trial.toml"]
    assert min(ends["trials"], ends["error"]) > COUNT / 20


MINIMAL = 'page = "wsj"\nclient = "graph"\n'
DEEP = "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"seed = {DEEP}", "not TOML: Nested too deeply"),
        (f"seed = {'9' * 5000}", "not TOML: Exceeds the limit"),
        (f"seed = 0x{'f' * 9000}", "seed: this int is not a whole number from 0"),
        ("#" * 200_000, "more than 131072 characters"),
        ("[sweep]\n" + "\n".join(f"{name} = [{','.join(map(str, range(1, 90)))}]" for name in
                                 ("rtt_ms", "down_kbit", "up_kbit", "initcwnd_segments")),
         "62742241 conditions, 62742241 trials; allowed: 100000"),
        ("\n".join(f"k{n} = 1" for n in range(5000)), "and 4900 more like these"),
    ],
)  # fmt: skip
def test_what_would_take_hours_or_end_badly_is_refused(
    text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "trial.toml").write_text(MINIMAL + text)
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        load_experiment(tmp_path / "trial.toml", CATALOGUE)


@pytest.mark.parametrize("value", [DEEP, "9" * 5000])
def test_an_option_beyond_toml_is_reported(value: str, tmp_path: Path) -> None:
    (tmp_path / "trial.toml").write_text(MINIMAL)
    with pytest.raises(ConfigurationError, match="--set seed="):
        load_experiment(tmp_path / "trial.toml", CATALOGUE, [parse_override(f"seed={value}")])
