"""Reference of results, ``docs/results.md``: each file and its fields, from its code.

What a field means is the string below it in its class, its unit is the end of its name.  A field
without such a string is an error, so that no field can be added without one.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from analysis.records.kind import records_of
from analysis.tables.kind import TableKind, tables_of
from analysis.tables.summary import CellSummary, Summary, TrialSummary
from analysis.verdicts.compare.schema import ComparisonDocument
from testbed.base import errors
from testbed.base.places import ROOT
from testbed.base.wings import provided
from testbed.client.command import KEPT
from testbed.client.command import OUTPUT_FILE as CLIENT_OUTPUT
from testbed.experiment.knobs import meaning_of
from testbed.kinds import KINDS
from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, PEER_FILE
from testbed.model import (
    CAPTURE_FILE,
    HAR_FILE,
    KEYS_FILE,
    OBSERVATION_FILE,
    SERVER_CAPTURE_FILE,
    SERVER_LOG_FILE,
    TRIAL_FILE,
    Experiment,
    Record,
    Trial,
)
from testbed.model.knob import Knob
from testbed.results.costs import COSTS_FILE
from testbed.results.manifest import MANIFEST_FILE, Manifest
from testbed.results.records import RECORDS_FILE
from testbed.results.seal import SEAL_FILE, Seal

RESULTS_REFERENCE = ROOT / "docs" / "results.md"
UNITS = {"ns": "ns", "ms": "ms", "us": "µs", "s": "s", "pct": "%", "bytes": "B",
         "segments": "segments"}  # fmt: skip
"""The unit of a value by the end of its name."""
_SPECS = tuple(kind.spec for kind in KINDS.values())
KNOBS = {kind.spec: "[knobs](knobs.md)" for kind in KINDS.values() if not kind.library} | {
    each.default_factory: f"[knobs](knobs.md#{each.name})"
    for spec in _SPECS
    for each in fields(spec)
    if is_dataclass(each.default_factory)
}
"""What docs/knobs.md describes already."""
_SPEC: Any = Union[_SPECS]  # noqa: UP007
_DECIDED: dict[type, dict[str, Any]] = {
    Trial: {"condition": _SPEC},
    Experiment: {"conditions": tuple[_SPEC, ...], "kind": Literal[tuple(KINDS)]},
}
"""Types of fields that the kinds of trial decide."""
TRIAL_FILES = {
    TRIAL_FILE: "What was asked, as `trial` in the record.",
    OBSERVATION_FILE: "What the trial wrote about itself, before it was judged.",
    CAPTURE_FILE: "Every packet at the client's end of the link, with times in ns (pcap).",
    SERVER_CAPTURE_FILE: "Of a page load: the headers of every packet at the server's end (pcap); "
    "none where there were more than 116,480.",
    HAR_FILE: "The load as a HAR 1.2 file.",
    "visit-N.har": "The same of the visits before it, from 1.",
    **{name: words for kind in KINDS.values() for name, words in kind.file_words.items()},
    "client.log": "Standard output and error of the client; of `command` the latter alone.",
    CLIENT_OUTPUT: "Standard output of the client `command`.",
    f"{KEPT}NAME": "A file that a command left in `{{out}}`.",
    OUTPUT_FILE: "Standard output of a command in the lab.",
    ERROR_FILE: "Its standard error.",
    PEER_FILE: "Standard output and error of what ran at the other end.",
    "console.log": "The console of the trial's kernel, or of its enclosure on the host kernel.",
    SERVER_LOG_FILE: "nginx's error log, if it complained.",
    KEYS_FILE: "Of a page over TLS: the secrets of the client's sessions, by which "
    "Wireshark opens the captures.",
}
OF_KINDS: dict[type, tuple[str, Callable[[TableKind], type | None]]] = {
    TrialSummary: ("plt_ms", lambda kind: kind.trial_fields),
    CellSummary: ("sample_ms", lambda kind: kind.cell_fields),
}
"""Documents that have fields of each kind of trial: after which one, and where they are."""
_INTRODUCTION = f"""\
# Results

Every file of a results folder, every field and column, for programs that read them. Written by
`make reference` from the code.

`results/<UTC>-<experiment>/` is one run on one kernel; `results/latest` points at the newest. `run`
writes the manifest, the records and the trials' files, and never changes them; a run that ends puts
the records in the order of its plan. In virtual time they are equal to the byte wherever it ran.
`run` and `report` derive the others from these, and can write them anew.

| file | what it is |
|---|---|
| [`{MANIFEST_FILE}`](#manifestjson) | what was asked, in which environment, in which order |
| [`{RECORDS_FILE}`](#recordsjsonl) | one line for each trial that ended |
| `{COSTS_FILE}` | what each of them took of the machine, which no result depends on |
| [`trials/<trial_id>/`](#trials) | the packet capture, the HAR file and the logs of each trial |
| [`table.csv`](#tablecsv) | the table, a row for each condition or pair of arms |
| [`summary.json`](#summaryjson) | every number, with its proof |
| `report.html` | all of it for people, in one file |
| [`{SEAL_FILE}`](#verificationjson) | who judged the records, and digests of what none has one of |

`compare --json` prints [a document of its own](#compare---json), a run on several kernels has
[one more](#kernelsjson), and each verb ends with one of the [exit codes](#exit-codes).
Values are never rounded. A missing value is `null`, in CSV an empty field. A file of another
`schema` is refused by its number. A *proven* trial is one whose packet capture and TCP counters
agree that the mechanism under test was at work, or was not.
"""


@dataclass(frozen=True, slots=True)
class Described:
    """A field of a document: its name, its evaluated type, and what it means."""

    name: str
    type: Any
    meaning: str

    @property
    def unit(self) -> str:
        """The unit of its values; empty where they have none."""
        return unit_of(self.name)


def unit_of(name: str) -> str:
    """Return the unit that ``name`` ends in; empty if it ends in none."""
    if name.endswith("_per_s"):
        return "1/s"
    return UNITS.get(name.rpartition("_")[2], "") if "_" in name else ""


def render_results() -> str:
    """Return the whole page.

    Raises:
        ValueError: fields without a description, all by name.
    """
    known: set[type] = set()
    files = ((f"`{name}`", meaning) for name, meaning in TRIAL_FILES.items())
    return "\n".join((
        _INTRODUCTION,
        _section("trials/", "`<trial_id>.attemptN/` keeps an earlier attempt. A baseline has "
                 "no such files.", _rows(("file", "what it is"), files)),
        _section("Exit codes", "", _rows(("code", "meaning"), sorted(read_exit_codes().items()))),
        _document(MANIFEST_FILE, "Written once, before the first trial.", Manifest, known),
        _document(
            RECORDS_FILE, "Each line is a *Record*, flushed to disk when its trial ends. Its "
            f"`cost` is `null`: that is in `{COSTS_FILE}`, by `trial_id` and `attempt`.",
            Record, known),
        _document(
            SEAL_FILE, "Written by a run, `merge` and `verify`; `verify` holds the folder against "
            "it.", Seal, known),
        _table_csv(),
        _document(
            "summary.json", "What `table.csv` holds and more, with sorted keys.", Summary, known),
        _document(
            "compare --json", "`./run.sh compare BASE NEW --json` prints this to standard output "
            "([what it means](compare.md)).", ComparisonDocument, known),
        *_of_wings(known),
    ))  # fmt: skip


def _of_wings(known: set[type]) -> Iterator[str]:
    """Yield the sections of documents that wings write: the point ``result_documents``."""
    for each in provided("result_documents"):
        root = each.load()
        about = (inspect.getdoc(root) or "").partition("\n\n")[2]
        yield _document(each.name, " ".join(about.split()), root, known)


@cache
def describe(kind: type) -> tuple[Described, ...]:
    """Return the fields of ``kind``, a dataclass or a typed dictionary, in their order.

    Raises:
        ValueError: some have no description.
    """
    hints = get_type_hints(kind, include_extras=True)
    strings = _strings_below(inspect.getsource(kind))
    # What a class lists beside its fields (properties, constants) is no part of the document.
    names = kind.__dataclass_fields__ if is_dataclass(kind) else kind.__annotations__
    types = hints | _DECIDED.get(kind, {})
    described = (Described(n, types[n], strings.get(n) or _knob_help(hints[n])) for n in names)
    parts = tuple(part for each in described for part in _parts(kind, each))
    lacking = [f"{kind.__name__}.{each.name}" for each in parts if not each.meaning]
    if lacking:
        raise ValueError(
            f"write what it is in a string below the field, for docs/results.md: {lacking}"
        )
    return parts


def _parts(kind: type, field: Described) -> Iterator[Described]:
    """Yield a field, or what kinds of trial have in its place or after it."""
    if (kind, field.name) == (Record, "measured"):
        for each in KINDS.values():
            yield Described(each.kept_as, each.measured | None, each.kept_words)
        return
    yield field
    after, part_of = OF_KINDS.get(kind, ("", None))
    if part_of is not None and field.name == after:
        for name in KINDS:
            own = part_of(tables_of(name))
            yield from describe(own) if own is not None else ()


def read_exit_codes() -> dict[str, str]:
    """Return what each exit code means, by the code as text."""
    strings = _strings_below(inspect.getsource(errors))
    return {
        str(value): strings[name]
        for name, value in vars(errors).items()
        if name.startswith("EXIT_")
    }


def documents_in(hint: Any) -> Iterator[type]:
    """Yield each class with fields of its own that a value of the type ``hint`` may hold."""
    named = [each for each in getattr(hint, "__metadata__", ()) if is_document(each)]
    if is_document(hint):
        yield hint
    elif named:
        yield from named
    else:
        for part in get_args(hint):
            yield from documents_in(part)


def is_document(hint: Any) -> bool:
    """Return whether ``hint`` is a class whose fields are described one by one."""
    return isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint))


def _strings_below(source: str) -> dict[str, str]:
    """Return the string below each assignment at the top of a module, or of its one class."""
    module = ast.parse(textwrap.dedent(source))
    first = module.body[0]
    body = first.body if isinstance(first, ast.ClassDef) else module.body
    strings: dict[str, str] = {}
    name = ""
    for statement in body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=target)):
                name = target
            case ast.Assign(targets=[ast.Name(id=target)]):
                name = target
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                strings[name] = " ".join(text.split())
                name = ""
            case _:
                name = ""
    return strings


def _knob_help(hint: Any) -> str:
    knobs = [
        annotation
        for annotation in getattr(hint, "__metadata__", ())
        if isinstance(annotation, Knob)
    ]
    return f"{meaning_of(knobs[0])} ([knob](knobs.md))" if knobs else ""


def _document(title: str, introduction: str, root: type, known: set[type]) -> str:
    """Return a page for ``root`` and a part for each class below it that no earlier one has."""
    waiting, parts = [root], []
    while waiting:
        kind = waiting.pop(0)
        if kind in known or kind in KNOBS:
            continue
        known.add(kind)
        fields = describe(kind)
        waiting += [below for field in fields for below in documents_in(field.type)]
        summary = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("``", "`")
        parts.append(f"### {kind.__name__}\n\n{' '.join(summary.split())}\n\n{_fields(fields)}\n")
    return f"## {title}\n\n{introduction}\n\n" + "\n".join(parts)


def _fields(fields: Iterable[Described]) -> str:
    return _rows(
        ("field", "type", "unit", "meaning"),
        ((f"`{f.name}`", _type_words(f.type), f.unit, f.meaning) for f in fields),
    )


def _type_words(hint: Any) -> str:
    """Return a type in JSON's words, with links to the classes that are described."""
    if isinstance(hint, type) and hint in KNOBS:
        return KNOBS[hint]
    if is_document(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if get_origin(hint) is Annotated:
        # A plain dictionary stands for the class that it is annotated with.
        plain, optional = hint.__origin__, NoneType in get_args(hint.__origin__)
        words = " and ".join(_type_words(each) for each in documents_in(hint))
        return f"{words} or null" if words and optional else words or _type_words(plain)
    return _generic_words(hint)


def _generic_words(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return f"{_type_words(parts[0])}; may be absent"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type_words(part) for part in parts))
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in parts)
    if origin in (tuple, list):
        return f"list of {_type_words(parts[0])}"
    if origin is dict:
        return "object" if parts[1] is Any else f"object of {_type_words(parts[1])}"
    return {
        str: "text", int: "integer", float: "number", bool: "true or false", NoneType: "null",
    }[hint]  # fmt: skip


def _table_csv() -> str:
    first, *others = KINDS
    further = "".join(f", of {tables_of(k).trials} {_names(records_of(k).axes)}" for k in others)
    introduction = (
        "The first columns are the knobs on which conditions differ, by name ([knobs](knobs.md)); "
        f"{_names(records_of(first).axes)} are always there{further}. "
        "Times are rounded to the nanosecond, percentages to "
        "four places. The last columns, from the first byte on, are what a visitor sees; each is "
        "there only if a browser gave it."
    )
    parts = [f"## table.csv\n\n{introduction}\n"]
    described = (group for kind in KINDS for group in tables_of(kind).columns.items())
    for title, columns in described:
        rows = ((f"`{name}`", unit_of(name), meaning) for name, meaning in columns.items())
        parts.append(f"### {title}\n\n{_rows(('column', 'unit', 'meaning'), rows)}\n")
    return "\n".join(parts)


def _names(axes: Iterable[str]) -> str:
    return " and ".join(f"`{name}`" for name in axes)


def _section(title: str, introduction: str, body: str) -> str:
    return "\n\n".join(part for part in (f"## {title}", introduction, body) if part) + "\n"


def _rows(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    table = (
        f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in (heading, *rows)
    )
    return f"\n|{'---|' * len(heading)}\n".join((next(table), "\n".join(table)))
