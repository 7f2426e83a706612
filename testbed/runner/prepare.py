"""Preparation of a run: names that exist, built pages, bundle and kernel, the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from testbed.archive.reading import read_archive
from testbed.base import log, places
from testbed.base.errors import ConfigurationError
from testbed.base.sources import digest_sources, imported_sources
from testbed.base.wings import provided
from testbed.client import CLIENTS
from testbed.experiment.config import Catalogue
from testbed.experiment.plan import plan_trials
from testbed.kernel import (
    KERNELS,
    REGULAR_VERSIONS,
    KernelPlace,
    kernel_versions,
    open_kernel,
    pinned_algorithms,
)
from testbed.kernel.build.compiled import read_misses
from testbed.kernel.build.native import ensure_native
from testbed.kernel.run.hardware import read_cpuid
from testbed.kernel.run.host import HostKernel
from testbed.kernel.run.idle import require_idle
from testbed.kernel.run.interface import Kernel
from testbed.kernel.run.virtual import VirtualKernel
from testbed.kinds import DESCRIPTIONS, KINDS, commands_of
from testbed.model import Condition, Experiment, LinkSpec, TcpSpec, in_real_time
from testbed.pages.build import build_page
from testbed.pages.catalogue import find_page, list_pages
from testbed.results.environment import Environment, read_environment
from testbed.results.folder import TRACES_FOLDER
from testbed.root.cache import Root, ensure_named
from testbed.root.spec import guest_root_names
from testbed.runner import judge
from testbed.runner.local import RunSetup
from testbed.server.listeners import list_plain
from testbed.setup.bundle import make_bundle
from testbed.setup.determinism import check_determinism
from testbed.setup.own import check_programs, digest_own, find_programs, list_own
from testbed.traces.catalogue import read_again, read_all

_log = log.logger(__name__)


def read_catalogue() -> Catalogue:
    """Return what an experiment may name here."""
    return Catalogue(
        pages=frozenset(folder.name for folder in list_pages(places.PAGES)),
        clients=frozenset(CLIENTS),
        references=list_references(),
        kernels={name: kernel_versions(name) for name in KERNELS},
        libraries={
            kind.name: read_library(places.ROOT / kind.library)
            for kind in KINDS.values()
            if kind.library
        },
        roots=frozenset(guest_root_names()),
        regular=REGULAR_VERSIONS,
        algorithms=pinned_algorithms(),
        honours={name: client.honours for name, client in CLIENTS.items()},
    )


def list_references() -> frozenset[str] | None:
    """Return the publications that wings have; ``None`` if there is no wing that has any."""
    folders: list[Path] = [each.load() for each in provided("references")]
    return frozenset(file.stem for each in folders for file in each.iterdir()) if folders else None


def read_library(folder: Path) -> dict[str, str]:
    """Return the texts of the files in ``folder`` by name, in the order of their names."""
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.toml"))}


def prepare_from(
    pages: Path, roots: Mapping[str, Root]
) -> Callable[[Experiment, int], tuple[RunSetup, Environment]]:
    """Return ``prepare`` with the pages in the folder ``pages`` and ``roots``, as of a pack."""
    return partial(prepare, home=pages, roots=roots)


def prepare(
    experiment: Experiment, jobs: int, home: Path | None = None,
    roots: Mapping[str, Root] = MappingProxyType({}),
) -> tuple[RunSetup, Environment]:  # fmt: skip
    """Build or find pages, traces, bundle and kernel for ``experiment``, and say what they are.

    ``home`` is the folder of its pages, by default the work tree's, with the traces of the user
    beside it; ``roots`` go before those of the work tree.

    Raises:
        ConfigurationError: a page is wrong.
        MissingError: a part cannot be had on this machine.
        StorageError: the cache cannot be written.
    """
    cache = places.cache()
    names = experiment.pages
    pages = {name: built_page(name, cache, home) for name in names}
    traces = read_all(experiment.traces, trace_home(experiment, home), places.TRACES)
    commands = commands_of(experiment)
    own = {} if experiment.command_folder is None else list_own(Path(experiment.command_folder))
    problems = check_programs(commands, own) + refuse_plain(experiment, pages)
    if problems:
        raise ConfigurationError(problems)
    root = roots.get(experiment.root) or ensure_named(experiment.root, cache, _log.info)
    find_programs(commands, root.usr)
    bundle = make_bundle(cache, ensure_native(cache, _log.info), root, own, traces)
    place = KernelPlace(cache, bundle.path, root.usr, _log.info)
    kernel = open_kernel(experiment.kernel, experiment.kernel_version, place)
    if in_real_time(kernel.name):
        require_idle()
    host_program = KINDS[experiment.kind].host_program
    if isinstance(kernel, HostKernel) and host_program:
        kernel = replace(
            kernel, management=import_module(host_program).build_program(cache / "bpf")
        )
    user_land = {"root": root.digest} | digest_own(own)
    user_land |= {f"trace.{name}": trace.digest for name, trace in traces.items()}
    code = {"bundle": bundle.digest, "judge": digest_judge()}
    loaded = {name: read_archive(folder).digest for name, folder in pages.items()}
    environment = read_environment(kernel.identity(), user_land, code, loaded, places.ROOT)
    # Facts, and no part of the environment's id: what holds a guest does not change what it does.
    facts = {"confinement": kernel.confinement, "cpuid": read_cpuid()}
    facts |= {"root_newer": root.newer} if root.newer else {}
    misses = read_misses(kernel.binary.parent) if isinstance(kernel, VirtualKernel) else ()
    facts |= {"kernel_misses": "; ".join(misses)} if misses else {}
    facts = environment.facts | facts
    judged = read_again(traces, trace_home(experiment, home))
    setup = RunSetup(
        *(kernel, pages, judge.conclude, fitting_jobs(kernel, jobs), (bundle.path,), judged)
    )
    return setup, replace(environment, facts=facts)


def refuse_plain(experiment: Experiment, pages: Mapping[str, Path]) -> list[str]:
    """Return a sentence for each page that is to come over HTTP/3 and has origins without TLS."""
    conditions = (each for each in experiment.conditions if isinstance(each, Condition))
    names = dict.fromkeys(each.page for each in conditions if each.protocol == "h3")
    return [
        f'page {name}: protocol = "h3" is for origins with TLS, and {plain[0]} has none; take a '
        "page that was recorded over https, such as one whose name ends with -h2"
        for name in names
        if (plain := list_plain(read_archive(pages[name])))
    ]


def trace_home(experiment: Experiment, home: Path | None) -> Path | None:
    """Return the folder of the user's traces: beside the pages of a pack, or the experiment."""
    if home is not None:
        return home.parent / TRACES_FOLDER
    return None if experiment.trace_folder is None else Path(experiment.trace_folder)


def fitting_jobs(kernel: Kernel, jobs: int) -> int:
    """Return how many trials at once ``kernel`` may run of the ``jobs`` asked for."""
    if not in_real_time(kernel.name):
        return jobs
    if jobs > 1:
        _log.info("kernel %s measures in real time: one trial at a time", kernel.name)
    return 1


def prepare_determinism(boots: int, client: str, version: str, jobs: int) -> tuple[str, ...]:
    """Boot one condition of Table 1 ``boots`` times and describe each boot that differs.

    Raises:
        ConfigurationError: no such client or kernel version.
        MissingError: a part cannot be had on this machine.
    """
    condition = Condition(page="wikipedia", client=client, link=LinkSpec(rtt_ms=100.0),
                          tcp=TcpSpec(tfo=True, initcwnd_segments=3))  # fmt: skip
    experiment = Experiment("determinism", "", (condition,), kernel_version=version)
    setup, _ = prepare(experiment, jobs)
    if not isinstance(setup.kernel, VirtualKernel):
        raise ConfigurationError(
            [f"kernel {setup.kernel.name}: its runs are not meant to be equal"]
        )
    return check_determinism(replace(setup.kernel, traced=True), plan_trials(experiment)[0],
                             setup.pages[condition.page], judge.conclude, boots, jobs)  # fmt: skip


def built_page(name: str, cache: Path, home: Path | None = None) -> Path:
    """Return the folder of the built page of whatever kind, built now if need be.

    Its sources are in ``home``, by default the work tree's pages.

    Raises:
        ConfigurationError: there is no such page, or its files are wrong.
        MissingError: what builds it cannot be had.
        StorageError: the cache cannot be written.
    """
    return build_page(find_page(home or places.PAGES, name), cache)


def digest_judge() -> str:
    """Return the digest of all code that judges trials, as environments have it."""
    return digest_sources(imported_sources(*judging_modules(), at_once=True))


def judging_modules() -> tuple[str, ...]:
    """Return the names of the modules that judge trials, with what a registry imports for them."""
    return (judge.__name__, *DESCRIPTIONS, *(kind.judgement for kind in KINDS.values()))
