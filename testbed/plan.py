"""From an Experiment to its Trials, in the order in which tables show them."""

from __future__ import annotations

from testbed.errors import ConfigurationError
from testbed.model import Experiment, Trial


def plan_trials(experiment: Experiment) -> tuple[Trial, ...]:
    """Every condition with every repetition; repetition ``r`` has the seed ``seed + r``.

    Raises:
        ConfigurationError: two trials are the same, or there are none.
    """
    trials = tuple(
        Trial(
            condition=condition,
            repetition=repetition,
            seed=experiment.seed + repetition,
            kernel=experiment.kernel,
            kernel_version=experiment.kernel_version,
            timeout_s=experiment.timeout_s,
        )
        for condition in experiment.conditions
        for repetition in range(experiment.repetitions)
    )
    if not trials:
        raise ConfigurationError([f"{experiment.name}: the experiment has no trials"])
    seen: dict[str, Trial] = {}
    for trial in trials:
        if trial.id in seen:
            raise ConfigurationError(
                [f"{experiment.name}: two trials are the same (id {trial.id}): {trial.condition}"]
            )
        seen[trial.id] = trial
    return trials
