"""Trials and experiments: points of a sweep, how often, with which seeds, on which kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from testbed.model.asked import Ip, LinkSpec, TcpSpec
from testbed.model.canonical import digest
from testbed.model.knob import Knob, identity
from testbed.model.opening import Opening, opening_of
from testbed.model.trace import traced

MAX_REPETITIONS = 100
FIRST_LOOK = 10
"""The fewest repetitions after which a run with ``until_ci_pct`` may end."""
_LARGEST = 2**31 - 1
DEFAULT_ROOT = "debian-13"
"""The root of trials that name none."""
DEFAULT_KIND = "page_load"
"""The kind of trial of an experiment, or of a stored spec, that names none."""


class Spec(Protocol):
    """What a trial is about: a point of a sweep, as a kind of trial has it.

    A frozen dataclass, whose fields are its knobs.  All but those of the default kind have a field
    ``kind`` with the kind's name.  One that loads or serves a page has its name as ``page``; one
    whose trial has a client, that as ``client``.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def draws(self) -> bool:
        """Whether a trial depends on its seed."""

    def __hash__(self) -> int:
        """Return a hash: trials of equal conditions are gathered by them."""


@runtime_checkable
class Linked(Protocol):
    """A spec of trials over the emulated access link."""

    @property
    def link(self) -> LinkSpec:
        """The link."""

    @property
    def tcp(self) -> TcpSpec:
        """TCP at both of its ends."""


_S = TypeVar("_S")


def in_real_time(kernel: str) -> bool:
    """Return whether the kernel of this name runs on the machine's own clock."""
    return kernel == "host"


def kind_of(spec: Spec) -> str:
    """Return the name of a spec's kind."""
    name: str = getattr(spec, "kind", DEFAULT_KIND)
    return name


def stored_kind(plain: Mapping[str, Any]) -> str:
    """Return the name of the kind that a spec is of, which is stored as ``plain`` data."""
    name: str = plain.get("kind", DEFAULT_KIND)
    return name


@dataclass(frozen=True, slots=True)
class Trial:
    """One condition, one repetition, one seed, on one kernel; ``id`` names it for ever."""

    condition: Spec
    """The point of the sweep."""
    repetition: int
    """Which repetition, from 0; all conditions of one repetition are a block."""
    seed: int
    """The seed of everything that is drawn at random."""
    kernel: str
    """The name of the kernel: `virtual` or `host`."""
    kernel_version: str
    """The version of that kernel."""
    timeout_s: float = 120.0
    """After how long the load is given up."""
    warm_up: bool = False
    """Whether the trial only warms the machine up: recorded, and never counted."""

    @property
    def kind(self) -> str:
        """The name of its kind: what the trial does."""
        return kind_of(self.condition)

    @property
    def page(self) -> str | None:
        """The name of the page that is loaded or served; ``None``: there is none."""
        return getattr(self.condition, "page", None)

    @property
    def client(self) -> str | None:
        """The name of the client; ``None``: there is none."""
        return getattr(self.condition, "client", None)

    @property
    def ip(self) -> Ip:
        """Which IP its network has."""
        network = getattr(self.condition, "link", self.condition)
        ip: Ip = getattr(network, "ip", "4")
        return ip

    @property
    def boot_options(self) -> tuple[str, ...]:
        """What its kernel is booted with besides, in virtual time."""
        options: tuple[str, ...] = getattr(self.condition, "boot_options", ())
        return options

    @property
    def visits(self) -> int:
        """How often its page is visited."""
        visits: int = getattr(self.condition, "visits", 1)
        return visits

    @property
    def rest_s(self) -> float:
        """For how long its client is idle between all visits, in seconds of its own clock."""
        idle_s: float = getattr(self.condition, "idle_s", 0.0)
        return (self.visits - 1) * idle_s

    @property
    def limit_s(self) -> float:
        """How long all its visits may take, in seconds of its own clock, with what is between."""
        return self.visits * self.timeout_s + self.rest_s

    @property
    def opening(self) -> Opening:
        """What its client has to know when it starts."""
        return opening_of(self.condition)

    def condition_as(self, spec: type[_S]) -> _S:
        """Return the condition, which is a ``spec``.

        Raises:
            TypeError: the trial is of another kind.
        """
        return _only(spec, self.condition)

    @property
    def linked(self) -> Linked:
        """The spec of a trial over the access link.

        Raises:
            TypeError: the trial has a network of its own.
        """
        return _only(Linked, self.condition)  # type: ignore[type-abstract]

    @property
    def id(self) -> str:
        """First 16 hex digits of the SHA-256 of everything that decides the result."""
        decisive = identity(self)
        decisive.pop("timeout_s")
        if not self.warm_up:  # what counts is named as it was before there were warm-ups
            decisive.pop("warm_up")
        return digest(decisive)[:16]


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as asked for: a title, the conditions in order, how often, and on which kernel.

    ``testbed.experiment.stopping`` says how ``until_ci_pct`` ends a run, and
    ``testbed.experiment.lanes`` how several ``kernel_versions`` or ``roots`` are run, each into a
    results folder of its own.
    """

    name: str
    """The experiment's name: that of its file."""
    title: Annotated[str, Knob(
        "What the report is headed with; without it the file's name.",
        label="Title", low=1, allowed="a line of text",
    )]  # fmt: skip
    conditions: tuple[Spec, ...]
    """All points of the sweep, in order."""
    repetitions: Annotated[int, Knob(
        "How often each condition is loaded: with the seeds seed, seed + 1 and so on.",
        label="Repetitions", low=1, high=10_000,
    )] = 1  # fmt: skip
    seed: Annotated[int, Knob(
        "The first seed; the same seed gives the same packets in virtual time.",
        label="Seed", low=0, high=_LARGEST,
    )] = 0  # fmt: skip
    kernel: Annotated[str, Knob(
        "The kernel that trials run on: in virtual time, or the machine's own.",
        label="Kernel", listed="kernel", key="kernel.name",
    )] = "virtual"  # fmt: skip
    kernel_version: Annotated[str, Knob(
        "Which version of the virtual kernel.",
        label="Kernel version", allowed="a version of that kernel, as text", key="kernel.version",
    )] = "7.3"  # fmt: skip
    root: Annotated[str, Knob(
        "The locked user land whose programs trials run.",
        label="Root", listed="root", since=3,
    )] = DEFAULT_ROOT  # fmt: skip
    roots: tuple[str, ...] = ()
    """The roots of [sweep], to run one after the other and compare with the first."""
    timeout_s: Annotated[float, Knob(
        "After how long a load is given up.",
        label="Time-out", unit="s", above=0, high=86_400,
    )] = 120.0  # fmt: skip
    reference: Annotated[str | None, Knob(
        "The published table to show beside the results.",
        label="Reference", listed="reference",
    )] = None  # fmt: skip
    until_ci_pct: Annotated[float | None, Knob(
        "Repeat until every 95 % interval is within this share of its median.",
        label="Interval", unit="%", above=0, high=100,
    )] = None  # fmt: skip
    max_repetitions: Annotated[int, Knob(
        "The most repetitions that until_ci_pct may take.",
        label="Most repetitions", low=FIRST_LOOK, high=10_000,
    )] = MAX_REPETITIONS  # fmt: skip
    warmup_blocks: Annotated[int | None, Knob(
        "Blocks of loads that are recorded and not counted; without it one in real time and none "
        "in virtual time.",
        label="Warm-up blocks", low=0, high=100,
    )] = None  # fmt: skip
    kernel_versions: Annotated[tuple[str, ...], Knob(
        "Versions of the virtual kernel, to run one after the other and compare with the first.",
        label="Kernel versions", low=2, high=100,
        allowed="a list of 2 to 100 versions of that kernel, as text", key="kernel.versions",
    )] = ()  # fmt: skip
    leave_out: Annotated[tuple[str, ...], Knob(
        "Conditions that a sweep would have and that are not loaded: each as --only has it, such "
        "as \"mechanism=abort,retries_refused=0\".",
        label="Left out", low=1, high=100, since=3,
        allowed="a list of texts such as \"mechanism=abort,retries_refused=0\"",
    )] = ()  # fmt: skip
    saturation_per_s: Annotated[int | None, Knob(
        "Of a server: the greatest rate that it keeps up with, which rate_of_saturation "
        "multiplies; ./run.sh saturation finds it.",
        label="Saturation", unit="1/s", low=1, high=1_000_000, since=3,
    )] = None  # fmt: skip
    prices_from: Annotated[str | None, Knob(
        "Of a server in virtual time: where its price list is from, for the report; without it the "
        "prices are chosen.",
        label="Prices from", low=1, since=3,
        allowed="a line of text, such as what bench's server-price writes beside its list",
    )] = None  # fmt: skip
    command_folder: Annotated[str | None, Knob(
        "A folder of yours, beside the file, that trials find as {folder}: programs and what they "
        "read.",
        label="Folder of the command", allowed="the path of a folder", since=3,
    )] = None  # fmt: skip
    trace_folder: str | None = None
    """The folder of the experiment file, where its links have traces of the user's own."""
    kind: Annotated[str, Knob(
        "What a trial is", label="Kind", listed="kind", since=3,
    )] = DEFAULT_KIND  # fmt: skip

    @property
    def pages(self) -> tuple[str, ...]:
        """The names of the pages that its trials load or serve, each once."""
        return _named("page", self.conditions)

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the clients of its trials, each once."""
        return _named("client", self.conditions)

    @property
    def traces(self) -> tuple[str, ...]:
        """The names of the traces of its links, each once."""
        links = (each.link for each in self.conditions if isinstance(each, Linked))
        return tuple(dict.fromkeys(name for link in links for name in traced(link).values()))

    def conditions_as(self, spec: type[_S]) -> tuple[_S, ...]:
        """Return the conditions, which are each a ``spec``.

        Raises:
            TypeError: they are of another kind.
        """
        return tuple(_only(spec, each) for each in self.conditions)


def _named(what: str, conditions: tuple[Spec, ...]) -> tuple[str, ...]:
    names = (getattr(each, what, None) for each in conditions)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _only(spec: type[_S], condition: Spec) -> _S:
    if not isinstance(condition, spec):
        raise TypeError(f"a trial of the kind {kind_of(condition)} is no {spec.__name__}")
    return condition
