"""``saturation``: a search by trials, each kept as a record of a results folder."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from firstflight.cli.main import main
from firstflight.cli.services import Services
from testbed.base.errors import EXIT_CONFIGURATION, EXIT_INCOMPLETE, EXIT_OK
from testbed.kernel.run.interface import RawResult
from testbed.model import OBSERVATION_FILE, Record, Trial
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from testbed.runner.local import RunSetup
from tests.fake_kernel import FakeKernel
from tests.hallway import ENVIRONMENT, make_services
from wings.server_loads.spec import ServerLoad
from wings.server_loads.tests.loads import served

CAPACITY = 137
BROKEN = 250
CONFIG = """\
kind = "server_load"
repetitions = 3
[sweep]
mechanism = ["default", "abort"]
rate_of_saturation = [0.5, 1.5]
"""


class ServerKernel(FakeKernel):
    """A fake kernel with a server of CAPACITY, which fails at a rate of BROKEN if it is to fail."""

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        rate = trial.condition_as(ServerLoad).arrivals.rate_per_s
        if rate == BROKEN and self.plan:
            return RawResult("failed", "no room", "", None, None)
        found = served(started=rate, seconds=1, replies_per_s=float(min(rate, CAPACITY)))
        observation = out / OBSERVATION_FILE
        observation.write_text(json.dumps(asdict(found)))
        return RawResult("ended", "", "", None, observation)


def conclude(trial: Trial, raw: RawResult, _out: Path, environment: str, attempt: int) -> Record:
    if raw.observation is None:
        return Record(trial.id, trial, "failed", environment, raw.message, attempt=attempt)
    told = json.loads(raw.observation.read_text())
    found = replace(served(), **{n: told[n] for n in ("started", "seconds", "replies_per_s")})
    return Record(trial.id, trial, "ok", environment, measured=found, attempt=attempt)


def services(folder: Path, *, breaks: bool = False) -> Services:
    kernel = ServerKernel(plan={"any": "failed"} if breaks else {})
    return replace(
        make_services(folder),
        prepare=lambda _experiment, jobs: (RunSetup(kernel, {}, conclude, jobs), ENVIRONMENT),
    )


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "load.toml"
    path.write_text(CONFIG)
    return str(path)


def test_it_says_what_to_set_and_keeps_every_trial(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["saturation", config], services(tmp_path)) == EXIT_OK
    out, err = capsys.readouterr()
    # 98 % of the connections are answered as they come up to here.
    assert out.startswith("kept up with 139 connections a second, not with 140: set ")
    assert "between 125 and 250 connections a second" in err
    folder = (tmp_path / "results" / "latest").resolve()
    assert folder.name.endswith("-load-saturation")
    records = read_records(folder)
    loads = [record.trial.condition_as(ServerLoad) for record in records]
    assert {
        (one.server.mechanism, record.trial.seed)
        for one, record in zip(loads, records, strict=True)
    } == {("default", 0)}
    assert [one.arrivals.rate_per_s for one in loads][:5] == [1000, 500, 250, 125, 177]
    manifest = load_manifest(folder)
    assert manifest.trials == tuple(record.trial_id for record in records)
    assert manifest.experiment.conditions == tuple(loads)


def test_it_begins_at_the_saturation_that_the_file_states(tmp_path: Path, config: str) -> None:
    words = ["saturation", config, "--set", "saturation_per_s=130", "--json"]
    assert main(words, services(tmp_path)) == EXIT_OK
    first, *_ = read_records((tmp_path / "results" / "latest").resolve())
    assert isinstance(first.trial.condition, ServerLoad)
    assert first.trial.condition.arrivals.rate_per_s == 130


def test_a_trial_without_a_number_ends_it(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["saturation", config], services(tmp_path, breaks=True)) == EXIT_INCOMPLETE
    assert "at 250 connections a second the trial was failed: no room" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('page = "amazon"\nclient = "graph"\n',
         "saturation: arrivals.rate_per_s: trials of the kind page_load have no such knob"),
        ('kind = "server_load"\n[arrivals]\nloop = "closed"\n',
         'saturation: arrivals.rate_per_s: has no meaning where loop = "closed"'),
    ],
)  # fmt: skip
def test_what_has_no_rate_has_no_saturation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "other.toml"
    path.write_text(text)
    assert main(["saturation", str(path)], services(tmp_path)) == EXIT_CONFIGURATION
    assert said in capsys.readouterr().err
