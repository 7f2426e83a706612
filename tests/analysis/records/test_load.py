from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import check_identity, judge, read_results, settle_attempts
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, PageLoad, Record
from tests.analysis.sample import broken, conditions, missed, record, write_sample
from tests.measured import load_of


@pytest.fixture
def good() -> Record:
    return record(conditions()[1])


def test_last_ok_attempt_counts(good: Record) -> None:
    attempts = [replace(broken(good, "timeout"), attempt=1),
                replace(good, attempt=2, reason="second"), replace(good, attempt=3, reason="third"),
                replace(broken(good, "unproven"), attempt=4)]  # fmt: skip
    for order in (attempts, attempts[::-1]):
        (chosen,) = settle_attempts(order)
        assert chosen.reason == "third"


def test_two_records_of_one_attempt_are_refused(good: Record) -> None:
    twins = [replace(good, reason="a"), replace(good, reason="b")]
    with pytest.raises(ConfigurationError, match=f"trial {good.trial_id} has 2 records of attempt"):
        settle_attempts(twins)


def test_without_an_ok_attempt_the_last_counts(good: Record) -> None:
    attempts = [
        replace(broken(good, "unproven"), attempt=2),
        replace(broken(good, "timeout"), attempt=1),
    ]
    assert settle_attempts(attempts)[0].outcome == "unproven"


def elsewhere(what: str, value: str) -> Record:
    """A second seed's record, one part of whose identity is ``value``."""
    other = record(conditions()[1], seed=1)
    trial = other.trial
    if what == "kernel":
        trial = replace(trial, kernel=value)
    elif what == "kernel version":
        trial = replace(trial, kernel_version=value)
    elif what == "environment id":
        return replace(other, environment=value)
    else:
        return replace(other, measured=replace(load_of(other), client_version=value))
    return replace(other, trial=trial, trial_id=trial.id)


@pytest.mark.parametrize(("what", "value"), [
    ("environment id", "ffff"), ("kernel", "host"), ("kernel version", "6.1"),
    ("version of client chromium", "Chrome/1"),
])  # fmt: skip
def test_refuses_to_pool(good: Record, what: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_identity([good, elsewhere(what, value)])
    (problem,) = caught.value.problems
    assert f"more than one {what}: " in problem
    assert f"'{value}' (1 of the trials)" in problem


def test_names_all_that_differs(good: Record) -> None:
    other = record(conditions()[1], seed=1)
    trial = replace(other.trial, kernel="host", kernel_version="6.18")
    other = replace(other, trial=trial, trial_id=trial.id, environment="ffff")
    with pytest.raises(ConfigurationError) as caught:
        check_identity([good, other])
    assert len(caught.value.problems) == 3


def test_a_failed_attempt_elsewhere_disturbs_nothing(good: Record) -> None:
    failed = replace(broken(record(conditions()[1], seed=1), "timeout"), environment="ffff")
    assert check_identity([good, failed]).environment == good.environment


def test_identity_of_one_environment(good: Record) -> None:
    identity = check_identity([good])
    assert (identity.kernel, identity.kernel_version) == ("virtual", "7.3")
    assert identity.clients == {"chromium": "HeadlessChrome/156.0.8000.1"}


def test_ok_needs_its_proof(good: Record) -> None:
    assert (
        good.proof is not None and good.measured_as(PageLoad) is not None and good.lab is not None
    )
    bad_lab = replace(good.lab, knob_errors=("mtu is 9000",))
    assert judge(good) == ("ok", None)
    assert judge(replace(good, proof=None))[0] == "unproven"
    assert judge(replace(good, proof=replace(good.proof, problems=("no",)))) == ("unproven", "no")
    assert judge(replace(good, lab=bad_lab)) == ("lab_mismatch", "mtu is 9000")
    assert judge(replace(good, measured=None))[0] == "failed"
    assert judge(replace(good, replay=None))[0] == "failed"
    assert judge(replace(good, measured=replace(load_of(good), plt_ms=math.nan)))[0] == "failed"


def test_misses_count_only_where_they_are_allowed(good: Record) -> None:
    lacking = replace(missed(good, "GET http://x/"), outcome="ok", reason=None)
    assert judge(lacking) == ("failed", "the record is ok but the page lacks GET http://x/")
    condition = replace(good.trial.condition_as(Condition), allow_misses=True)
    assert judge(replace(lacking, trial=replace(good.trial, condition=condition)))[0] == "ok"


def test_reads_a_folder(tmp_path: Path) -> None:
    results = read_results(write_sample(tmp_path))
    assert len(results.records) == 23
    assert [r.trial_id for r in results.records] == sorted(r.trial_id for r in results.records)


def test_a_folder_without_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"manifest\.json"):
        read_results(tmp_path)
