"""Scenarios that a command line names, and an experiment of them for each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.config import Catalogue, describe_no_version
from testbed.model import Experiment
from wings.scenarios.description import KIND
from wings.scenarios.promise import PromiseError, read_promise
from wings.scenarios.spec import Scenario

ALL = "all"
TITLE = "What Fast Open and TLS early data promise"


def choose_scenarios(names: Sequence[str], catalogue: Catalogue) -> tuple[Scenario, ...]:
    """Return the scenarios that ``names`` are, each once: of the catalogue, files, or all.

    Raises:
        ConfigurationError: with every name that is none, and all that is wrong in the files.
    """
    known = catalogue.libraries[KIND.name]
    chosen: dict[str, str] = {}
    problems: list[str] = []
    for name in names:
        if name == ALL:
            chosen |= known
        elif name in known:
            chosen[name] = known[name]
        elif name.endswith(".toml"):
            try:
                chosen[Path(name).stem] = Path(name).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"cannot read {name}: {getattr(error, 'strerror', error)}")
        else:
            near = did_you_mean(name, known)
            problems.append(
                f"no scenario is named {name!r}{near}; ./run.sh scenario lists them, and a file "
                "of your own ends in .toml"
            )
    for name, text in chosen.items():
        try:
            read_promise(text)
        except PromiseError as error:
            problems += [f"{name}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigurationError(problems)
    return tuple(Scenario(name, text) for name, text in chosen.items())


def plan_lanes(
    conditions: tuple[Scenario, ...], kernel: str, versions: Sequence[str], host: bool,
    everything: bool, catalogue: Catalogue,
) -> tuple[Experiment, ...]:  # fmt: skip
    """Return an experiment for each kernel.

    Raises:
        ConfigurationError: there is no such kernel, or no such version of it.
    """
    known = catalogue.kernels.get(kernel)
    if not known:
        near = did_you_mean(kernel, catalogue.kernels)
        allowed = ", ".join(sorted(catalogue.kernels))
        raise ConfigurationError([f"--kernel {kernel}: no such kernel{near}; allowed: {allowed}"])
    problems = [
        f"--kernel-version {version}: {describe_no_version(kernel, version, known)}"
        for version in versions
        if version not in known
    ]
    if problems:
        raise ConfigurationError(problems)
    regular = tuple(version for version in known if version in catalogue.regular) or known
    chosen_versions = tuple(dict.fromkeys(versions)) or (regular if everything else known[:1])
    kernels = [(kernel, version) for version in chosen_versions]
    if host and kernel != "host":
        kernels += [("host", version) for version in catalogue.kernels["host"][:1]]
    return tuple(
        Experiment("scenarios", TITLE, conditions, kernel=name, kernel_version=version,
                   warmup_blocks=0, kind=KIND.name)
        for name, version in kernels
    )  # fmt: skip
