from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import ConfigurationError
from testbed.base.places import CONFIGS
from testbed.experiment.config import Catalogue, load_experiment
from testbed.experiment.knobs import SWEPT
from testbed.experiment.options import Override, parse_override
from testbed.model import Condition, Experiment, LinkSpec, TcpSpec
from testbed.runner.prepare import read_catalogue
from tests.hallway import CATALOGUE

MINIMAL = 'page = "wsj"\nclient = "graph"\n'


def load(folder: Path, text: str, *sets: str) -> Experiment:
    path = folder / "trial.toml"
    path.write_text(text)
    return load_experiment(path, CATALOGUE, [parse_override(text) for text in sets])


def problems(folder: Path, text: str, *sets: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text, *sets)
    return [problem.replace(str(folder), "") for problem in caught.value.problems]


def test_the_paper_table_is_24_conditions_of_the_paper(catalogue: Catalogue) -> None:
    experiment = load_experiment(CONFIGS / "paper-table1.toml", catalogue)
    assert len(experiment.conditions_as(Condition)) == 24
    assert experiment.reference == "fastopen-table1"
    assert (experiment.kernel, experiment.kernel_version) == ("virtual", "7.3")
    seen = {(c.page, c.link.rtt_ms, c.tcp.tfo) for c in experiment.conditions_as(Condition)}
    pages = ("amazon", "nytimes", "wsj", "wikipedia")
    assert seen == {(p, r, t) for p in pages for r in (20.0, 100.0, 200.0) for t in (False, True)}
    for condition in experiment.conditions_as(Condition):
        assert condition.client == "chromium"
        assert condition.dns == "resolver"
        assert condition.tcp.initcwnd_segments == 3
        assert condition.tcp.cookies == "cached"
        assert (condition.link.down_kbit, condition.link.up_kbit) == (4000, 256)
        assert condition.link.buffer_bytes == 131072
        assert condition.link.framing_bytes == 0


def test_every_committed_experiment_loads() -> None:
    catalogue = read_catalogue()
    names = {path.stem for path in CONFIGS.glob("*.toml")}
    assert {"paper-table1", "quick", "real-pages"} <= names
    for name in names:
        assert load_experiment(CONFIGS / f"{name}.toml", catalogue).conditions


def test_what_is_not_said_has_the_models_defaults(tmp_path: Path) -> None:
    experiment = load(tmp_path, MINIMAL)
    (condition,) = experiment.conditions_as(Condition)
    assert (condition.link, condition.tcp) == (LinkSpec(), TcpSpec())
    assert (experiment.title, experiment.repetitions, experiment.seed) == ("trial", 1, 0)


def test_whole_numbers_become_what_the_model_says(tmp_path: Path) -> None:
    text = MINIMAL + "timeout_s = 5\n[link]\nrtt_ms = 20\nloss_pct = 1\n"
    experiment = load(tmp_path, text)
    link = experiment.conditions_as(Condition)[0].link
    # 20 and 20.0 would give different trial ids.
    assert [type(v) for v in (link.rtt_ms, link.loss_pct, experiment.timeout_s)] == [float] * 3
    swept = load(tmp_path, MINIMAL + "[sweep]\nrtt_ms = [20, 100]\n")
    assert [repr(c.link.rtt_ms) for c in swept.conditions_as(Condition)] == ["20.0", "100.0"]


def test_axes_vary_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = 'client = "graph"\n[sweep]\ntfo = [true, false]\npage = ["wsj", "amazon"]\n'
    seen = [(c.tcp.tfo, c.page) for c in load(tmp_path, text).conditions_as(Condition)]
    assert seen == [(True, "wsj"), (True, "amazon"), (False, "wsj"), (False, "amazon")]


def test_cookies_may_be_given_with_fast_open_off(tmp_path: Path) -> None:
    experiment = load(tmp_path, MINIMAL + '[tcp]\ntfo = false\ncookies = "cold"\n')
    assert experiment.conditions_as(Condition)[0].tcp == TcpSpec(tfo=False, cookies="cold")


def test_unlimited_requests(tmp_path: Path) -> None:
    text = MINIMAL + '[sweep]\nrequests_per_connection = [1, "unlimited"]\n'
    seen = [c.tcp.requests_per_connection for c in load(tmp_path, text).conditions_as(Condition)]
    assert seen == [1, None]


def test_how_pages_are_replayed(tmp_path: Path) -> None:
    plain = load(tmp_path, MINIMAL).conditions_as(Condition)[0]
    assert (plain.protocol, plain.tls_version, plain.randomness, plain.allow_misses) == (
        "as-recorded", "1.3", "as-recorded", False,
    )  # fmt: skip
    text = (
        'randomness = "pinned"\nallow_misses = true\n' + MINIMAL + "[sweep]\n"
        'protocol = ["h1", "h2"]\ntls_version = ["1.3", "1.2"]\n'
    )
    conditions = load(tmp_path, text).conditions_as(Condition)
    assert [(c.protocol, c.tls_version) for c in conditions] == [
        ("h1", "1.3"), ("h1", "1.2"), ("h2", "1.3"), ("h2", "1.2"),
    ]  # fmt: skip
    assert {(c.randomness, c.allow_misses) for c in conditions} == {("pinned", True)}


def test_a_version_of_tls_is_text(tmp_path: Path) -> None:
    assert (
        load(tmp_path, MINIMAL, "tls_version=1.2").conditions_as(Condition)[0].tls_version == "1.2"
    )
    (problem,) = problems(tmp_path, "tls_version = 1.2\n" + MINIMAL)
    assert '"1.3" or "1.2"' in problem


def test_every_error_is_reported_at_once_with_place_and_remedy(tmp_path: Path) -> None:
    text = (
        'clinet = "graph"\n'
        'page = "amazn"\n'
        "rtt_ms = 20\n"
        "repetitions = 0\n"
        "[link]\n"
        "rtt = 20\n"
        'rtt_ms = "20ms"\n'
        "up_kbit = 0\n"
        "[tcp]\n"
        'tfo = "yes"\n'
        'cookies = "cache"\n'
        "[kernel]\n"
        'name = "vrtual"\n'
        "[sweep]\n"
        "loss_pct = 3\n"
        "down_kbit = [4000, true,\n"
        "  2.5]\n"
        "seed = [1, 2]\n"
    )
    found = problems(tmp_path, text)
    expected = [
        "/trial.toml:1: clinet: no such key at the top of the file (did you mean 'client'?)",
        "/trial.toml:2: page: no page is named 'amazn' (did you mean 'amazon'?); allowed: amazon,",
        "/trial.toml:3: rtt_ms: does not belong at the top of the file, but in [link]",
        "/trial.toml:4: repetitions: 0 is not a whole number from 1 to 10000",
        "/trial.toml:6: link.rtt: no such key in [link] (did you mean 'rtt_ms'?); allowed: rtt_ms",
        '/trial.toml:7: link.rtt_ms: "20ms" is not a number of milliseconds above 0, up to 60000',
        "/trial.toml:8: link.up_kbit: 0 is not a whole number from 1 to 10000000",
        '/trial.toml:10: tcp.tfo: "yes" is not true or false',
        '/trial.toml:11: tcp.cookies: "cache" is not "cached" or "not-required" or "cold" '
        "(did you mean 'cached'?)",
        "/trial.toml:13: kernel.name: no kernel is named 'vrtual' (did you mean 'virtual'?)",
        "/trial.toml:15: sweep.loss_pct: 3 is not a list of one or more values",
        "/trial.toml:16: sweep.down_kbit[1]: true is not a whole number from 1 to 10000000",
        "/trial.toml:16: sweep.down_kbit[2]: 2.5 is not a whole number from 1 to 10000000",
        "/trial.toml:18: sweep.seed: cannot be swept; allowed in [sweep]: page",
        "/trial.toml: client: missing",
    ]
    assert len(found) == len(expected)
    for beginning in expected:
        assert [line for line in found if line.startswith(beginning)], beginning


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("link.rtt_ms", "0"),
        ("link.rtt_ms", "-1"),
        ("link.rtt_ms", "nan"),
        ("link.rtt_ms", "inf"),
        ("link.up_kbit", "0"),
        ("link.buffer_bytes", "0"),
        ("link.mtu_bytes", "100"),
        ("link.loss_pct", "100.5"),
        ("link.loss_pct", "-0.1"),
        ("tcp.initcwnd_segments", "0"),
        ("tcp.initcwnd_segments", "1001"),
        ("tcp.requests_per_connection", "0"),
        ("tcp.congestion_control", '"rm -rf"'),
        ("repetitions", "1.5"),
        ("seed", "-1"),
        ("timeout_s", "0"),
        ("title", '""'),
        ("dns", '"bind"'),
        ("reference", '"fastopen-table2"'),
        ("kernel.version", '"5.0"'),
    ],
)
def test_impossible_values_are_refused_in_file_and_on_the_command_line(
    tmp_path: Path, key: str, value: str
) -> None:
    table, _, name = key.rpartition(".")
    text = f"{MINIMAL}[{table}]\n{name} = {value}\n" if table else f"{name} = {value}\n{MINIMAL}"
    (in_file,) = problems(tmp_path, text)
    assert in_file.startswith(f"/trial.toml:{4 if table else 1}: {key}: ")
    (on_line,) = problems(tmp_path, MINIMAL, f"{key}={value}")
    assert on_line.startswith(f"--set {key}={value}: {key}: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[link]\nbuffer_bytes = 1499\n", "/trial.toml:4: link.buffer_bytes: a buffer of 1499 b"),
        (
            "[link]\nframing_bytes = 14\n[sweep]\nbuffer_bytes = [9000, 1513]\n",
            "/trial.toml:6: sweep.buffer_bytes: a buffer of 1513 bytes cannot hold one packet of "
            "1514 bytes",
        ),
        (
            "[link]\nrtt_ms = 20\n[sweep]\nrtt_ms = [20]\n",
            "/trial.toml:4: link.rtt_ms: also swept (/trial.toml:6)",
        ),
        ("[sweep]\nrtt_ms = [20, 20.0]\n", "/trial.toml:4: sweep.rtt_ms: 20.0 is in the list"),
        ("[sweep]\nrtt_ms = []\n", "/trial.toml:4: sweep.rtt_ms: [] is not a list of one or more"),
        ("link = 3\n", "/trial.toml:3: link: 3 is not a table; write it as [link]"),
        ("sweep = [1]\n", "/trial.toml:3: sweep: [1] is not a table; write it as [sweep]"),
    ],
)
def test_values_that_do_not_fit_together(tmp_path: Path, text: str, problem: str) -> None:
    (found,) = problems(tmp_path, MINIMAL + text)
    assert found.startswith(problem)


def test_a_file_that_is_not_toml_names_the_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, MINIMAL + "rtt_ms = = 3\n")
    assert found.startswith("/trial.toml:3: not TOML: ")
    (found,) = problems(tmp_path, MINIMAL + 'title = """\n')
    assert found.startswith("/trial.toml:3: not TOML: ")


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(MINIMAL)
    with pytest.raises(ConfigurationError, match=r"quik.toml.*did you mean 'quick.toml'"):
        load_experiment(tmp_path / "quik.toml", CATALOGUE)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        load_experiment(tmp_path / "bytes.toml", CATALOGUE)


def test_a_name_that_cannot_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="results folder"):
        load_experiment(tmp_path / "a b.toml", CATALOGUE)


def test_set_replaces_values_and_axes(tmp_path: Path) -> None:
    text = MINIMAL + "[link]\nup_kbit = 256\n[sweep]\nrtt_ms = [20, 100]\ntfo = [false, true]\n"
    fixed = load(tmp_path, text, "rtt_ms=7", "link.up_kbit=[1, 2]", "kernel.version=6.1")
    seen = [(c.link.rtt_ms, c.tcp.tfo, c.link.up_kbit) for c in fixed.conditions_as(Condition)]
    assert seen == [(7.0, t, u) for t in (False, True) for u in (1, 2)]
    assert fixed.kernel_version == "6.1"
    replaced = load(tmp_path, text, "sweep.rtt_ms=[1]", "client=wget2", 'page="amazon"')
    assert {(c.link.rtt_ms, c.client, c.page) for c in replaced.conditions_as(Condition)} == {
        (1.0, "wget2", "amazon")
    }


def test_the_last_set_wins(tmp_path: Path) -> None:
    for sets in (["rtt_ms=[1, 2]", "rtt_ms=3"], ["rtt_ms=9", "rtt_ms=[4]", "rtt_ms=3"]):
        (condition,) = load(tmp_path, MINIMAL, *sets).conditions_as(Condition)
        assert condition.link.rtt_ms == 3.0


def test_wrong_sets_are_reported_with_the_rest(tmp_path: Path) -> None:
    found = problems(tmp_path, "repetitions = 0\n" + MINIMAL, "rtt=3", "up_kbit=x", "seed=[1]")
    assert [line.partition(": ")[0] for line in found] == [
        "--set rtt=3",
        "/trial.toml:1",
        "--set seed=[1]",
        "--set up_kbit=x",
    ]
    assert "did you mean 'rtt_ms'" in found[0]


def test_set_without_value() -> None:
    with pytest.raises(ConfigurationError, match="key=value"):
        parse_override("rtt_ms")


@given(st.sampled_from([*SWEPT, "repetitions", "seed", "bogus", "link", "kernel.name"]), st.text())
def test_no_override_ends_in_anything_but_an_experiment_or_its_problems(
    key: str, value: str
) -> None:
    override = Override(key, value, f"--set {key}={value}")
    try:
        experiment = load_experiment(CONFIGS / "quick.toml", CATALOGUE, [override])
    except ConfigurationError as error:
        assert error.problems
        assert all(problem.startswith(override.option) for problem in error.problems)
    else:
        assert experiment.conditions
