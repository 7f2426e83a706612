"""Run of a kernel's own tests: what it needs, and the results folder that it fills."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from testbed.base import log, places
from testbed.base.errors import ConfigurationError
from testbed.kernel import ensure_build, find_confinement
from testbed.kernel.build.native import ensure_native
from testbed.kernel.build.toolchain import ROOT as TOOLCHAIN_ROOT
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_named
from wings.kernels.own.build import ensure_own
from wings.kernels.own.definition import OwnKernel, define, read_kernel
from wings.kernels.selftests.packetdrill import Packetdrill
from wings.kernels.selftests.plan import SUFFIX, Selftest, Wish, plan
from wings.kernels.selftests.run import Bench, run_tests
from wings.kernels.selftests.tree import TestTree, ensure_tests
from wings.kernels.selftests.verdict import TestPart, Verdict

RECORDS_FILE, MANIFEST_FILE, LOGS = "selftests.jsonl", "manifest.json", "logs"
FRAGMENTS = places.ROOT / "kernels"
NAME, LEAKS = "debug", "leaks"
_IMAGES = "um-images-of-a-guest.patch"
"""An image would lack the shadow in which KASAN keeps what is known of memory."""
_log = log.logger(__name__)


@dataclass(frozen=True, slots=True)
class SelftestRun:
    """Tests of one kernel that are ready to run; ``lacks_packetdrill``: some are for it alone."""

    tree: TestTree
    bench: Bench
    tests: tuple[Selftest, ...]

    @property
    def lacks_packetdrill(self) -> bool:
        """Whether scripts of packetdrill are among the tests, and it is not there."""
        scripts = any(test.name.endswith(SUFFIX) for test in self.tests)
        return scripts and self.bench.packetdrill is None

    def begin(self, folder: Path) -> None:
        """Write what runs where into the new results ``folder``."""
        bench, drill = self.bench, self.bench.packetdrill
        manifest = {"kernel": asdict(bench.build.identity), "tests": self.tree.source,
                    "planned": len(self.tests), "words": list(bench.words),
                    "packetdrill": {"says": drill.says, "sha256": drill.sha256} if drill else None,
                    "root": DEFAULT_ROOT, "tree": places.describe_version()}  # fmt: skip
        (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n")
        (folder / LOGS).mkdir()

    def perform(self, folder: Path, jobs: int | None) -> list[Verdict]:
        """Run all tests, and keep each verdict in ``folder`` as it comes.

        Raises:
            InterruptedTrial: it was stopped from outside.
        """
        jobs = jobs or len(os.sched_getaffinity(0))
        running = run_tests(self.tests, self.bench, folder / LOGS, jobs)
        return list(_kept(running, folder / RECORDS_FILE))


def prepare_selftests(
    version: str, wish: Wish, drill: Packetdrill | None, cache: Path, *, debug: bool = False
) -> SelftestRun:
    """Build the kernel ``version`` and its tests, and choose those that ``wish`` names.

    Raises:
        ConfigurationError: there is no such kernel, or it has none of these tests.
        TestbedError: the kernel, its source, or a tool is not to be had.
    """
    tree = ensure_tests(version, cache, _log.info)
    tests = tuple(plan(tree, wish, has_packetdrill=drill is not None))
    if not tests:
        raise ConfigurationError([f"kernel {version} has none of these tests"])
    return SelftestRun(tree, _prepare_bench(version, debug, cache, drill), tests)


def define_debug(version: str, home: Path, folder: Path = FRAGMENTS) -> OwnKernel:
    """Return ``version`` compiled with options that find mistakes, by the fragments in ``folder``.

    Raises:
        ConfigurationError: there is no such kernel.
    """
    base = read_kernel(version, home).base
    further = folder / f"{NAME}-{base}.config"
    fragments = [Path(LEAKS), folder / f"{NAME}.config", *([further] if further.is_file() else [])]
    own = define(f"{NAME}-{version}"[:40], home, base=version, patches=(), fragments=fragments,
                 git=None, revision=None)  # fmt: skip
    images = tuple(file.name for file in own.pin.patches if file.name.endswith(_IMAGES))
    return replace(own, omitted=tuple(sorted({*own.omitted, *images})))


def read_verdicts(folder: Path) -> list[Verdict]:
    """Return the verdicts that a results folder has."""
    with (folder / RECORDS_FILE).open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    return [
        Verdict(**{
            **document,
            "parts": tuple(TestPart(**part) for part in document["parts"]),
            "evidence": tuple(document["evidence"]),
        })
        for document in documents
    ]  # fmt: skip


def _prepare_bench(version: str, debug: bool, cache: Path, drill: Packetdrill | None) -> Bench:
    usr = ensure_named(DEFAULT_ROOT, cache, _log.info).usr
    name, shadowed = version, False
    if debug:
        own = define_debug(version, places.data())
        name, shadowed = own.name, own.shadowed
        # Not booted to look at it: each test will, and says what is wrong.
        build = ensure_own(own, cache, len(os.sched_getaffinity(0)), _log.info, lambda _build: None)
    else:
        build = ensure_build(version, cache, usr, _log.info)
    native = ensure_native(cache, _log.info)
    tools = ensure_named(TOOLCHAIN_ROOT, cache, _log.info).usr
    return Bench(name, build, usr, native, tools, find_confinement(), drill, shadowed)


def _kept(running: Iterator[Verdict], file: Path) -> Iterator[Verdict]:
    """Yield each verdict when it is on disk; what is written has no time of the machine in it."""
    with file.open("w", encoding="utf-8") as sink:
        for verdict in running:
            sink.write(json.dumps(asdict(verdict)) + "\n")
            sink.flush()
            os.fsync(sink.fileno())
            if verdict.state in {"failed", "incomplete"}:
                _log.info("%s %s: %s", verdict.name, verdict.state, verdict.reason)
            yield verdict
