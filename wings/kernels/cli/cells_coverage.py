"""Coverage of a kernel's cells: what of a source file none of them has run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firstflight.cli.choice import Choice
from firstflight.cli.new_run import run_new
from firstflight.cli.services import Services
from testbed.base import log, places
from testbed.base.errors import TrialError
from testbed.base.scratch import scratch_folder
from testbed.experiment.options import Override
from wings.kernels.cli.source import keep_kernels
from wings.kernels.own.build import write_source
from wings.kernels.own.definition import OwnKernel, forget_own
from wings.kernels.own.function_coverage import (
    functions_run,
    instrument,
    list_functions,
    makefile_of,
    say_coverage,
)

_log = log.logger(__name__)


def find_coverage(
    services: Services, kernel: OwnKernel, files: Sequence[str], choice: Choice
) -> list[str]:
    """Load each cell once on ``kernel``, and say which functions of ``files`` none has run.

    Raises:
        ConfigurationError: the source has no such files.
        TestbedError: the kernel cannot be built so, or a load has no console.
    """
    cache = services.cache()
    with places.using_cache(cache), scratch_folder("kernel") as scratch:
        source, results = scratch / "source", scratch / "results"
        source.mkdir()
        write_source(kernel, {*files, *map(makefile_of, files)}, source, cache, _log.info)
        functions = {file: list_functions((source / file).read_text()) for file in files
                     if (source / file).is_file()}  # fmt: skip
        name = f"{kernel.name[:35]}-what"  # 40 at most, and never the kernel's own
        counted = instrument(kernel, files, source, name)
        keep_kernels(services, [counted], replaced=True)
        try:
            fixed = [Override("kernel.version", name, "the kernel that says what runs")]
            planned = replace(choice.load(services.catalogue(), fixed), repetitions=1)
            run = run_new(services, (planned,), results, copies=False)
        finally:
            forget_own(name, places.data())
        if run.interrupted:
            raise TrialError("interrupted before all cells had run")
        consoles = sorted(results.glob("trials/*/console.log"))
        ran = functions_run(path.read_text("latin-1") for path in consoles)
    return say_coverage(functions, ran)
