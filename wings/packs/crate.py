"""RO-Crate metadata of a pack: what is in it, how it was made, and how to repeat that.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) and the profile Process Run Crate 0.5, in JSON-LD.  It
names no person: who measured is not part of a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from testbed.base.errors import ConfigurationError
from testbed.base.units import format_count
from testbed.pages.catalogue import FACTS_NAME
from wings.packs.container import ListedFile, PackFile
from wings.packs.contents import METADATA_FILE, PAGES_FOLDER, PackContents, PackedLane

FORMAT = "1"
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
SHA256_TERM = "https://w3id.org/ro/terms/workflow-run#sha256"
_FORMAT_ID = "#format"
_HARNESS_ID = "#firstflight"
_MIT = "https://spdx.org/licenses/MIT"
_NOT_STATED = "#license"
_HEX = re.compile(r"[0-9a-f]{64}")
_URL = re.compile(r"https?://[!-~]+")
_SPDX = re.compile(r"[A-Za-z0-9.+-]+")
_MEDIA_TYPES = {
    ".css": "text/css", ".csv": "text/csv", ".html": "text/html", ".log": "text/plain",
    ".md": "text/markdown", ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain",
    ".har": "application/json", ".json": "application/json", ".jsonl": "application/jsonl",
    ".pcap": "application/vnd.tcpdump.pcap", ".toml": "application/toml", ".xml": "application/xml",
}  # fmt: skip
_OTHER = "application/octet-stream"

Entity = dict[str, Any]


class OtherFormatError(ValueError):
    """The pack is of another format than this version reads."""


def render_metadata(contents: PackContents, license_: str | None) -> bytes:
    """Return the metadata, the same for equal contents.

    ``license_`` is the address of the licence that the results are shared under, or its SPDX
    identifier; ``None``: nobody has said.
    """
    licence = _licence(license_)
    files = [_file(file) for file in contents.files]
    pages = [_page(name, contents.files) for name in contents.pages]
    runs = [entity for lane in contents.lanes for entity in _run(lane, contents)]
    actions = [_ref(entity) for entity in runs if entity["@type"] == "CreateAction"]
    first = contents.lanes[0].manifest
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{first.experiment.title} ({first.experiment.name})",
        "description": _describe(contents),
        "datePublished": max(lane.manifest.created_utc for lane in contents.lanes),
        "license": _ref(licence),
        "conformsTo": {"@id": PROFILE},
        "mentions": _compact([*actions, *map(_ref, pages)]),
        "additionalProperty": {"@id": _FORMAT_ID},
        "hasPart": _compact([_ref(file) for file in files]),
    }
    descriptor: Entity = {"@id": METADATA_FILE, "@type": "CreativeWork", "about": {"@id": "./"},
                          "conformsTo": {"@id": CRATE}}  # fmt: skip
    profile: Entity = {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate",
                       "version": "0.5"}  # fmt: skip
    graph = [descriptor, root, profile, licence, *_software(first.environment.facts), *runs]
    graph.append(_property(_FORMAT_ID, "firstflight pack format", FORMAT))
    # Once each: results and program may have the same licence.
    unique = {entity["@id"]: entity for entity in graph}.values()
    context = [f"{CRATE}/context", {"sha256": SHA256_TERM}]
    document = {"@context": context, "@graph": [*unique, *pages, *files]}
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def parse_metadata(text: bytes) -> dict[str, ListedFile]:
    """Return what the metadata of a pack says of its files, by their names.

    Raises:
        OtherFormatError: it is of a pack of another format.
        ValueError: it is of no pack.
    """
    try:
        graph = json.loads(text)["@graph"]
        entities = [each for each in graph if isinstance(each, dict)]
        formats = [each.get("value") for each in entities if each.get("@id") == _FORMAT_ID]
        listed = [each for each in entities if each.get("@type") == "File"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise ValueError(f"its {METADATA_FILE} is none, or of no pack of results") from None
    match formats:
        case [str(given)] if given == FORMAT:
            return dict(map(_parse_file, listed))
        case [str(given)] if re.fullmatch(r"[0-9]{1,9}", given):
            raise OtherFormatError(
                f"is of format {given}, and this version reads {FORMAT}: use the revision that "
                "wrote it"
            )
    raise ValueError(f"its {METADATA_FILE} names no format of a pack")


def check_license(given: str) -> None:
    """Check that a licence is an SPDX identifier or an address.

    Raises:
        ConfigurationError: it is neither.
    """
    if not (_SPDX.fullmatch(given) or _URL.fullmatch(given)):
        raise ConfigurationError(
            [f"--license {given!a}: give an SPDX identifier, such as CC-BY-4.0, or an address that "
             "begins with https:// or http://"]
        )  # fmt: skip


def _parse_file(entity: Mapping[str, Any]) -> tuple[str, ListedFile]:
    name, size, digest = (entity.get(key) for key in ("@id", "contentSize", "sha256"))
    if not (
        isinstance(name, str)
        and isinstance(size, str)
        and re.fullmatch(r"\d{1,18}", size, re.ASCII)
        and isinstance(digest, str)
        and _HEX.fullmatch(digest)
    ):
        raise ValueError(f"{METADATA_FILE} does not say size and SHA-256 of {name!a}")
    return unquote(name), ListedFile(int(size), digest)


def _describe(contents: PackContents) -> str:
    """Return what a person should know first, and how to repeat the run."""
    manifest = contents.lanes[0].manifest
    experiment = manifest.experiment
    words = [
        f"Results of the experiment {experiment.name} of Firstflight, a reproducible page-load "
        f"testbed: {format_count(len(experiment.conditions), 'condition')}, "
        f"{format_count(experiment.repetitions, 'repetition')} from seed {experiment.seed}, kernel "
        f"{' and '.join(_kernel_name(lane) for lane in contents.lanes)}.",
        "The folder is a results folder as Firstflight leaves it: manifest.json says what was "
        "asked and what it ran in, records.jsonl holds a record for each trial, trials/ its "
        "capture, HAR and logs.",
    ]
    if contents.missing:
        words.append("It cannot be re-run elsewhere, because parts of it are missing:")
        words += [f"{name} ({why})." for name, why in sorted(contents.missing.items())]
    else:
        words.append("To repeat it: ./run.sh unpack FILE --rerun, in a tree of the revision below.")
    return " ".join([*words, *contents.notes])


def _software(facts: Mapping[str, str]) -> Iterator[Entity]:
    yield {"@id": _HARNESS_ID, "@type": "SoftwareApplication", "name": "Firstflight",
           "softwareVersion": facts.get("git_revision", "unknown"),
           "license": {"@id": _MIT}}  # fmt: skip
    yield {"@id": _MIT, "@type": "CreativeWork", "name": "MIT License"}


def _run(lane: PackedLane, contents: PackContents) -> Iterator[Entity]:
    """Yield the action that made a lane's records, its kernel, and what it was asked and ran in."""
    prefix = f"{lane.folder}/" if lane.folder else ""
    mark = f"-{lane.folder}" if lane.folder else ""
    manifest, experiment = lane.manifest, lane.manifest.experiment
    plan = {"experiment": experiment.name, "kind": experiment.kind,
            "conditions": str(len(experiment.conditions)),
            "repetitions": str(experiment.repetitions), "seed": str(experiment.seed)}  # fmt: skip
    parts = {"environment": manifest.environment.id} | manifest.environment.parts
    parts |= {f"page.{name}": digest for name, digest in manifest.environment.pages.items()}
    parts |= {f"fact.{name}": value for name, value in manifest.environment.facts.items()}
    properties = [
        *(_property(f"#asked{mark}/{quote(name)}", name, value) for name, value in plan.items()),
        *(_property(f"#ran-in{mark}/{quote(name)}", name, value)
          for name, value in sorted(parts.items())),
    ]  # fmt: skip
    kernel = {"@id": f"#kernel{mark}", "@type": "SoftwareApplication",
              "name": f"Linux, the {experiment.kernel} kernel of Firstflight",
              "softwareVersion": experiment.kernel_version}  # fmt: skip
    yield {
        "@id": f"#run{mark}",
        "@type": "CreateAction",
        "name": f"{experiment.name} on kernel {_kernel_name(lane)}",
        "description": f"{lane.done} of {format_count(len(manifest.trials), 'planned trial')} ok",
        "startTime": manifest.created_utc,
        "instrument": [{"@id": _HARNESS_ID}, _ref(kernel)],
        "object": [*({"@id": _page_id(name)} for name in contents.pages), *map(_ref, properties)],
        "result": _compact(
            [
                {"@id": quote(file.name)}
                for file in contents.files
                if file.name.startswith(prefix) and not file.name.startswith(f"{PAGES_FOLDER}/")
            ]
        ),
    }
    yield kernel
    yield from properties


def _kernel_name(lane: PackedLane) -> str:
    return f"{lane.manifest.experiment.kernel} {lane.manifest.experiment.kernel_version}"


def _page(name: str, files: Iterable[PackFile]) -> Entity:
    place = f"{PAGES_FOLDER}/{name}/"
    return {
        "@id": _page_id(name),
        "@type": "Collection",
        "name": f"The page {name}",
        "description": "The sources of a page that was loaded; page.toml says where they are from.",
        "mainEntity": {"@id": quote(f"{place}{FACTS_NAME}")},
        "hasPart": _compact([_ref(_file(file)) for file in files if file.name.startswith(place)]),
    }


def _page_id(name: str) -> str:
    return f"#page/{quote(name)}"


def _file(file: PackFile) -> Entity:
    return {"@id": quote(file.name), "@type": "File", "name": file.name,
            "encodingFormat": _MEDIA_TYPES.get(PurePosixPath(file.name).suffix, _OTHER),
            "contentSize": str(file.size), "sha256": file.sha256}  # fmt: skip


def _licence(given: str | None) -> Entity:
    if given is None:
        return {
            "@id": _NOT_STATED, "@type": "CreativeWork", "name": "Not stated",
            "description": "Who packed these results has not said under which licence they are.",
        }  # fmt: skip
    address = given if _URL.fullmatch(given) else f"https://spdx.org/licenses/{quote(given)}"
    return {"@id": address, "@type": "CreativeWork", "name": given}


def _property(identifier: str, name: str, value: str) -> Entity:
    return {"@id": identifier, "@type": "PropertyValue", "name": name, "value": value}


def _ref(entity: Mapping[str, Any]) -> Entity:
    return {"@id": entity["@id"]}


def _compact(references: Sequence[Entity]) -> Entity | Sequence[Entity]:
    """Return one reference as itself: RO-Crate 1.1, appendix on JSON-LD, wants no list of one."""
    return references[0] if len(references) == 1 else references
