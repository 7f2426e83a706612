"""Rules of files that ask for scenarios: what each scenario's own file has to be."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kinds.experiment_file import ExperimentFile
from wings.scenarios.promise import PromiseError, read_promise


def find_problems(file: ExperimentFile) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong in the scenarios that ``file`` asks for."""
    for name in file.all_of(("scenario",), ""):
        try:
            read_promise(file.library.get(name, ""))
        except PromiseError as error:
            yield from (f"scenario {name}: {problem}" for problem in error.problems)
