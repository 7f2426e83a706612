"""Names of a publication, held against what there is here: its pages, and what trials measure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from analysis.records.kind import records_of
from analysis.records.metric import Metric
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean, stem
from testbed.experiment.knobs import OF_KIND
from wings.papers.published.reference import IMPROVEMENT, Reference
from wings.papers.published.stated import KNOBS, Stated

MS_PER_S = 1000.0


def refuse_unknown(reference: Reference, names: Mapping[str, Collection[str]]) -> None:
    """See that each page, client or scenario of the stated values is there.

    Args:
        reference: the publication; its ``variants`` say which page of ours stands for one of its.
        names: the names that there are, by what they name; what is left out is not looked at.

    Raises:
        ConfigurationError: each name that nobody has, with its line.
    """
    problems = dict.fromkeys(_unknown(reference, names))
    if problems:
        raise ConfigurationError(list(problems))


def _unknown(reference: Reference, names: Mapping[str, Collection[str]]) -> Iterator[str]:
    for stated in reference.stated:
        for knob, value in stated.axes.items():
            listed = KNOBS[knob].knob.listed
            known = {*names.get(listed, ()),
                     *(reference.variants.values() if listed == "page" else ())}  # fmt: skip
            if listed not in names or value in known:
                continue
            stands = (f", or say in {reference.name}.toml which of ours stands for it "
                      f'(variants = {{ "ours" = "{value}" }})')  # fmt: skip
            yield (f"{_place(reference, stated)}: {knob}: no {listed} is named {value!r}"
                   f"{did_you_mean(str(value), known)}; correct the name, or add that {listed}"
                   f"{stands if listed == 'page' else ''}")  # fmt: skip


def find_metrics(reference: Reference, kind: str) -> dict[str, Metric]:
    """Return the metric that each stated quantity is, for trials of ``kind``.

    A quantity is a metric by its name, with its unit or without; ``improvement`` is none.

    Raises:
        ConfigurationError: each quantity that trials of this kind are not measured by, or that is
            stated in another unit, and each knob that they do not have, with its line; or claims of
            quantities, which need a module.
    """
    measured = records_of(kind)
    known = {name: each for each in measured.metrics for name in (each.name, stem(each.name))}
    problems: dict[str, str] = {}
    for stated in reference.stated:
        metric, place = known.get(stated.quantity), _place(reference, stated)
        for knob in sorted(stated.axes.keys() - set(OF_KIND[kind])):
            problems[knob] = (
                f"{place}: {knob}: trials of the kind {kind} have no such knob; leave its column "
                "out"
            )
        if stated.quantity == IMPROVEMENT and measured.paired:
            if stated.unit != "%":
                problems[stated.quantity] = (
                    f"{place}: unit: {IMPROVEMENT} is in %, not {stated.unit}"
                )
        elif metric is None:
            names = ", ".join(dict.fromkeys(stem(each.name) for each in measured.metrics))
            problems.setdefault(
                stated.quantity,
                f"{place}: quantity: trials of the kind {kind} are not measured by "
                f"{stated.quantity!r}{did_you_mean(stated.quantity, known)}; use one of {names}, "
                f"or rebuild it in {_module_of(reference)}",
            )
        elif scale(metric, stated) is None:
            also = " or s" if metric.is_time else ""
            problems[stated.quantity] = (
                f"{place}: unit: {stated.quantity} is measured in {metric.unit or 'no unit'}, not "
                f"in {stated.unit}; state it in {metric.unit or '-'}{also}"
            )
    if any(claim.quantity for claim in reference.claims):
        problems["claim"] = (
            f"{reference.name}.toml: claim: claims of a quantity are held to the tables of a "
            f"module; add {_module_of(reference)}, or leave them out"
        )
    if problems:
        raise ConfigurationError(list(problems.values()))
    return {stated.quantity: known[stated.quantity] for stated in reference.stated
            if stated.quantity in known}  # fmt: skip


def scale(metric: Metric, stated: Stated) -> float | None:
    """Return what a value of ``metric`` is divided by to be in the stated unit, if it can be."""
    if metric.is_time and stated.unit == "s":
        return MS_PER_S
    return 1.0 if stated.unit == (metric.unit or "-") else None


def _module_of(reference: Reference) -> str:
    return f"wings/papers/reproductions/{reference.name.replace('-', '_')}.py"


def _place(reference: Reference, stated: Stated) -> str:
    return f"{reference.name}.csv:{stated.line}"
