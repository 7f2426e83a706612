"""A crate by the validator of its community, without a network: ``validate_crate.py CRATE``.

Run by the Python of ``$FIRSTFLIGHT_ARTIFACT``.  Prints each requirement and recommendation that the
crate does not meet: the profile's check and what it says.  The one thing that the validator would
fetch, the JSON-LD context of RO-Crate 1.1, comes from a package; every other address is an error.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from types import SimpleNamespace

from rocrate_validator.models import Severity
from rocrate_validator.services import ValidationSettings, validate
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILES = ("ro-crate-1.1", "process-run-crate-0.5")


def fetch(_self: HttpRequester, url: str, **_how: object) -> SimpleNamespace:
    """Answer for the only document that there is."""
    assert url == CONTEXT, f"the validator asks for {url}"
    text = files("rocrate").joinpath("data", "ro-crate.jsonld").read_text("utf-8")
    headers = {"Content-Type": "application/ld+json"}
    return SimpleNamespace(
        status_code=200, headers=headers, text=text, json=lambda: json.loads(text)
    )


HttpRequester.get = fetch
unmet = set()
for profile in PROFILES:
    settings = ValidationSettings(rocrate_uri=sys.argv[1], profile_identifier=profile,
                                  requirement_severity=Severity.RECOMMENDED,
                                  offline=True)  # fmt: skip
    unmet |= {
        f"{issue.severity.name}: {issue.message}" for issue in validate(settings).get_issues()
    }
print("\n".join(sorted(unmet)))
