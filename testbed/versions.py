"""Which schemas of results are read here, and how an older one becomes today's.

Schema 2 has conditions without the knobs that are younger, and requests without the times of
their phases.  What it does not say has the default, which is what everybody had then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.model import SCHEMA_VERSION, Condition
from testbed.model.knob import with_defaults

READABLE = (2, SCHEMA_VERSION)


def check_schema(document: object) -> None:
    """See that ``document``, a record or a manifest as plain data, is of a schema that is read.

    Raises:
        ValueError: it is not; the message names both and the remedy.
    """
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema not in READABLE:
        raise ValueError(
            f"schema {schema}, but this testbed reads schemas "
            f"{' and '.join(map(str, READABLE))}; use the revision of the testbed that wrote it "
            "(git_revision in manifest.json), or run the experiment again"
        )


def upgrade_manifest(document: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of a readable schema as today's: its conditions say every knob."""
    today = dict(document) | {"schema": SCHEMA_VERSION}
    experiment = today.get("experiment")
    if isinstance(experiment, Mapping) and isinstance(experiment.get("conditions"), list):
        conditions = [with_defaults(Condition, each) for each in experiment["conditions"]]
        today["experiment"] = dict(experiment) | {"conditions": conditions}
    return today
