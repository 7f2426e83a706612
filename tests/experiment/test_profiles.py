"""Profiles of links by name: each that ships, every way to ask for one, and every mistake."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.base.places import PROFILES
from testbed.experiment.config import load_experiment
from testbed.experiment.label import knob_of
from testbed.experiment.options import Override, parse_override, select
from testbed.experiment.plan import plan_trials
from testbed.experiment.profiles import list_profiles, read_profile
from testbed.experiment.recheck import check_experiment
from testbed.model import Condition, Experiment, LinkSpec
from testbed.results.manifest import load_manifest, make_manifest, write_manifest
from tests.experiment.test_config import MINIMAL, load, problems
from tests.hallway import CATALOGUE, ENVIRONMENT

THREE_G = LinkSpec(rtt_ms=150.0, down_kbit=1600, up_kbit=768, profile="wpt-3gfast")
CABLE = LinkSpec(rtt_ms=28.0, down_kbit=5000, up_kbit=1000, profile="wpt-cable")
NAMED = 'link = "wpt-3gfast"\n' + MINIMAL


def links(experiment: Experiment) -> list[LinkSpec]:
    return [condition.link for condition in experiment.conditions_as(Condition)]


@pytest.mark.parametrize("path", sorted(PROFILES.iterdir()), ids=lambda path: path.stem)
def test_each_that_ships_says_whose_it_is(path: Path) -> None:
    profile = read_profile(path)
    assert profile.whose
    assert profile.source
    assert profile.date
    assert profile.about.endswith(".")
    assert {"down_kbit", "up_kbit"} <= set(profile.values)
    assert profile.link.buffer_bytes >= profile.link.mtu_bytes + profile.link.framing_bytes
    (found,) = links(load_experiment_of(path.stem, profile.link))
    assert found == profile.link


def load_experiment_of(name: str, link: LinkSpec) -> Experiment:
    """Plan one load over the profile by name: the numbers are in it as well."""
    experiment = load_experiment(
        PROFILES.parent / "configs" / "quick.toml",
        CATALOGUE,
        [parse_override("tfo=false"), Override("link", name, f"--link {name}")]
        + ([] if "rtt_ms" in read_profile(PROFILES / f"{name}.toml").values
           else [parse_override(f"rtt_ms={link.rtt_ms:g}")]),
    )  # fmt: skip
    assert asdict(links(experiment)[0])["profile"] == name
    return experiment


def test_a_name_at_the_top_or_in_the_table(tmp_path: Path) -> None:
    assert links(load(tmp_path, NAMED)) == [THREE_G]
    assert links(load(tmp_path, MINIMAL + '[link]\nprofile = "wpt-3gfast"\n')) == [THREE_G]
    beside = '[link]\nprofile = "wpt-3gfast"\nloss_pct = 1\nrtt_ms = 150\n'
    (link,) = links(load(tmp_path, MINIMAL + beside))
    assert (link.rtt_ms, link.loss_pct) == (150.0, 1.0)


@pytest.mark.parametrize("key", ["link", "profile"])
def test_a_sweep_of_names(tmp_path: Path, key: str) -> None:
    text = MINIMAL + f'[sweep]\ntfo = [false, true]\n{key} = ["wpt-3gfast", "wpt-cable"]\n'
    experiment = load(tmp_path, text)
    assert links(experiment) == [THREE_G, CABLE] * 2
    assert len({trial.id for trial in plan_trials(experiment)}) == 4
    for only in ("profile=wpt-cable", "link=wpt-cable"):
        assert links(select(experiment, only)) == [CABLE] * 2
    assert knob_of(experiment.conditions[0], "profile") == "wpt-3gfast"


def test_the_command_line_takes_the_place_of_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(MINIMAL + "[link]\nloss_pct = 1\nup_kbit = 9\n[sweep]\nrtt_ms = [20, 100]\n")
    one = Override("link", "wpt-3gfast", "--link wpt-3gfast")
    (link,) = links(load_experiment(path, CATALOGUE, [one]))
    assert (link.rtt_ms, link.up_kbit, link.loss_pct) == (150.0, 768, 1.0)
    two = Override("link", '["wpt-3gfast", "wpt-cable"]', "--link ...")
    assert [each.profile for each in links(load_experiment(path, CATALOGUE, [two]))] == [
        "wpt-3gfast",
        "wpt-cable",
    ]
    assert links(load(tmp_path, NAMED, "link=wpt-cable")) == [CABLE]


def test_what_a_profile_does_not_state_is_the_files(tmp_path: Path) -> None:
    text = 'link = "paper-table1"\n' + MINIMAL + "[sweep]\nrtt_ms = [20, 100]\n"
    assert [(each.rtt_ms, each.up_kbit) for each in links(load(tmp_path, text))] == [
        (20.0, 256),
        (100.0, 256),
    ]


def test_numbers_beside_a_name_that_has_others_are_refused(tmp_path: Path) -> None:
    remedy = "(./run.sh links show wpt-3gfast)"
    (problem,) = problems(tmp_path, NAMED, "rtt_ms=100")
    assert problem.startswith(
        "--set rtt_ms=100: link.rtt_ms: 100, but the profile wpt-3gfast (/trial.toml:1) states 150;"
    )
    assert problem.endswith(remedy)
    text = MINIMAL + '[link]\nprofile = "wpt-3gfast"\nup_kbit = 1\n[sweep]\nrtt_ms = [100, 150]\n'
    up, rtt = sorted(problems(tmp_path, text), reverse=True)
    assert up.startswith("/trial.toml:7: sweep.rtt_ms: [100.0, 150.0], but the profile wpt-3gfast")
    assert rtt.startswith("/trial.toml:5: link.up_kbit: 1, but the profile wpt-3gfast")
    sweep = MINIMAL + '[link]\nrtt_ms = 28\n[sweep]\nlink = ["wpt-cable", "wpt-3gfast"]\n'
    (problem,) = problems(tmp_path, sweep)
    assert "28, but the profile wpt-3gfast (/trial.toml:6) states 150" in problem


def test_an_unknown_name_says_which_there_are(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, 'link = "wpt-3gfst"\n' + MINIMAL)
    assert problem.startswith(
        "/trial.toml:1: link.profile: no profile is named 'wpt-3gfst' "
        "(did you mean 'wpt-3gfast'?); there are: browsertime-2g, "
    )
    assert problem.endswith("wpt-lte")
    (problem,) = problems(tmp_path, MINIMAL + '[sweep]\nlink = ["wpt-cable", "nothing"]\n')
    assert problem.startswith("/trial.toml:4: sweep.profile: no profile is named 'nothing'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("link = 3\n", "link: 3 is not a table"),
        ('link = ["wpt-cable"]\n', "is not a table"),
        ('link = "../wpt-cable"\n', "no profile is named '../wpt-cable'"),
        ('link = "wpt-cable"\nlink.mtu_bytes = 576\n', 'its profile is [link] profile = "NAME"'),
    ],
)
def test_what_is_no_name(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in problem for problem in problems(tmp_path, text + MINIMAL))


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "profiles" / "mine.toml"
    own.parent.mkdir()
    own.write_text("[link]\nrtt_ms = 7\nbuffer_bytes = 3000\n")
    text = 'link = "mine"\n' + MINIMAL
    assert links(load(tmp_path, text)) == [LinkSpec(7.0, buffer_bytes=3000, profile="mine")]
    assert list_profiles(tmp_path)["mine"] == own
    (problem,) = problems(tmp_path, text, "mtu_bytes=9000")
    assert "a buffer of 3000 bytes cannot hold one packet of 9000 bytes" in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mine.toml:1: link: a profile states values of the link, in a table [link]"),
        ("[link]\nrtt_ms = -1\n", "mine.toml:2: link.rtt_ms: -1 is not a number"),
        ("[link]\nrtt = 1\n", "did you mean 'rtt_ms'"),
        ('[link]\nprofile = "wpt-cable"\n', "made of numbers, not of another"),
        ("sauce = 1\n[link]\nrtt_ms = 1\n", "mine.toml:1: sauce: a profile has no such key (did"),
        ('date = "x"\n[link]\nrtt_ms = 1\n', 'date: "x" is not a date such as'),
        ("[link\n", "mine.toml: not TOML"),
        ("# " + "x" * (1 << 16), "no profile has more than"),
    ],
)
def test_a_profile_that_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.toml").write_text(text)
    assert any(said in problem for problem in problems(tmp_path, 'link = "mine"\n' + MINIMAL))


def test_results_need_no_profile_any_more(tmp_path: Path) -> None:
    experiment, now = load(tmp_path, NAMED), datetime(2026, 11, 25, tzinfo=UTC)
    write_manifest(tmp_path, make_manifest(experiment, ENVIRONMENT, now, ()))
    (spec,) = load_manifest(tmp_path).experiment.conditions
    assert spec == experiment.conditions[0]
    assert check_experiment(experiment, CATALOGUE) == []


def test_trials_without_a_profile_keep_their_ids(tmp_path: Path) -> None:
    (trial,) = plan_trials(load(tmp_path, MINIMAL))
    (named,) = plan_trials(load(tmp_path, NAMED))
    (numbers,) = plan_trials(load(tmp_path, MINIMAL, "rtt_ms=150", "down_kbit=1600", "up_kbit=768"))
    assert len({trial.id, named.id, numbers.id}) == 3


def test_a_folder_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the profile"):
        read_profile(tmp_path)
