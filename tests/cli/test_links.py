"""The verb ``links``: what is listed, what numbers come to, and a name that there is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.words import MISSING
from firstflight.cli.links import REQUEST_BYTES, RESPONSE_BYTES
from firstflight.cli.main import main
from firstflight.usage import answer, read_verbs
from testbed.base.places import PROFILES
from testbed.model import LinkSpec
from tests.closed_form import ColdFetch, fetch_ms
from tests.hallway import make_services


def run(base: Path, *arguments: str) -> int:
    return main(["links", *arguments], make_services(base))


@pytest.mark.parametrize("words", [[], ["list"]])
def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run(tmp_path, *words) == 0
    out = capsys.readouterr().out
    names = [path.stem for path in PROFILES.glob("*.toml")]
    assert [name for name in sorted(names) if f"\n{name} " not in out] == []
    (line,) = [line for line in out.splitlines() if line.startswith("wpt-cable ")]
    assert line.split()[1:] == ["5,000", "1,000", "28", "0", "17,500", "210", "1,049", "2.4", "12",
                                "77.3", "48.5"]  # fmt: skip
    assert "wolsing-geo *" in out
    assert run(tmp_path, *words, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == len(names)
    assert answer(["links", *words], read_verbs()) is None


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "show", "wpt-3gfast", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    link = LinkSpec(**about["link"])
    assert link == LinkSpec(150.0, 1600, 768, profile="wpt-3gfast")
    asked = [ColdFetch(link, REQUEST_BYTES, RESPONSE_BYTES, tfo) for tfo in (False, True)]
    # As another closed form has them: without what the buffer and the delayed acknowledgements do.
    comes_to = about["comes_to"]
    told = [comes_to["cold_fetch_ms"], comes_to["cold_fetch_tfo_ms"]]
    assert told == pytest.approx([fetch_ms(each) for each in asked])
    assert comes_to["bdp_down_bytes"] == 30_000
    assert run(tmp_path, "show", "wpt-3gfast") == 0
    out = capsys.readouterr().out
    assert out.startswith("wpt-3gfast: of WebPageTest, 2015-04-16\n")
    assert "\n[link]\nrtt_ms = 150\ndown_kbit = 1600\nup_kbit = 768\n\n" in out


def test_show_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "show", "cable") == 2
    assert "no profile is named 'cable' (did you mean " in capsys.readouterr().err


def test_show_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('[link]\nrtt_ms = 5\nloss_pct = 1\nqdisc = "fq_codel limit 100"\n')
    assert run(tmp_path, "show", str(own)) == 0
    out = capsys.readouterr().out
    assert 'qdisc = "fq_codel limit 100"' in out
    assert f"cold_fetch_ms        {MISSING}" in out
