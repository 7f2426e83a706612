"""Schemas of results: which one is read here, and what older revisions left out of it.

A knob that is younger than the revision which wrote some results is not in them: its default is
what everybody had then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.model import SCHEMA_VERSION, Condition
from testbed.model.knob import with_defaults


def check_schema(document: object) -> None:
    """See that ``document``, a record or a manifest as plain data, is of today's schema.

    Raises:
        ValueError: it is not; the message names both and the remedy.
    """
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema != SCHEMA_VERSION:
        raise ValueError(
            f"schema {schema}, but this testbed reads schema {SCHEMA_VERSION}; use the revision of "
            "the testbed that wrote it (git_revision in manifest.json), or run the experiment again"
        )


def fill_manifest(document: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest whose conditions say every knob."""
    whole = dict(document)
    experiment = whole.get("experiment")
    if isinstance(experiment, Mapping) and isinstance(experiment.get("conditions"), list):
        conditions = [with_defaults(Condition, each) for each in experiment["conditions"]]
        whole["experiment"] = dict(experiment) | {"conditions": conditions}
    return whole
