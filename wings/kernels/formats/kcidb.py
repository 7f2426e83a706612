"""Results of test suites as KernelCI's database takes them: KCIDB's schema 5.3.

A kernel is a checkout and its build, a case a test with what was measured
(github.com/kernelci/kcidb-io).  Nothing is null there: what is not known is left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.formats.suites import Case, Form, State, Suite, Tested

ORIGIN = "firstflight"
VERSION = {"major": 5, "minor": 3}
LONGEST_EXCERPT = 16_384
_STATUS: dict[State, str] = {"passed": "PASS", "failed": "FAIL", "skipped": "SKIP",
                             "error": "ERROR"}  # fmt: skip
_USERS = "own/"
"""How a patch of the user's is named, beside those of the testbed."""


def write_kcidb(suites: Sequence[Suite]) -> str:
    """Return ``suites`` as a JSON document: of each that says on what it was run."""
    known = [(suite, suite.tested) for suite in suites if suite.tested is not None]
    document: dict[str, Any] = {
        "version": VERSION,
        "checkouts": [_checkout(tested) for _, tested in known],
        "builds": [_build(tested) for _, tested in known],
        "tests": [_test(suite.topic, case, on) for suite, on in known for case in suite.cases],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _checkout(tested: Tested) -> dict[str, Any]:
    parts = tested.parts
    package, version = (parts.get(f"kernel.{name}", "") for name in ("package", "package_version"))
    return {
        "id": _checkout_id(tested), "origin": ORIGIN,
        "git_commit_name": f"{package} {version}".strip() or tested.name,
        "patchset_hash": _patchset(parts), "comment": tested.name, "start_time": tested.began,
        "valid": True,
        "misc": {name.removeprefix("kernel."): parts[name]
                 for name in ("kernel.source_sha256", "kernel.patches") if name in parts}
    }  # fmt: skip


def _build(tested: Tested) -> dict[str, Any]:
    parts = tested.parts
    return {"id": _build_id(tested), "checkout_id": _checkout_id(tested), "origin": ORIGIN,
            "comment": tested.name, "architecture": "um",
            "compiler": parts.get("kernel.compiler", ""),
            "config_name": parts.get("kernel.config_sha256", ""), "status": "PASS",
            "misc": {"environment": tested.environment}}  # fmt: skip


def _test(topic: str, case: Case, tested: Tested) -> dict[str, Any]:
    path = f"{ORIGIN}.{_step(topic)}.{_step(case.name)}"
    run = _digest(tested.began, tested.folder, tested.environment)
    test: dict[str, Any] = {"id": f"{ORIGIN}:{run}.{path}", "build_id": _build_id(tested),
                            "origin": ORIGIN, "path": path, "comment": case.name,
                            "status": _STATUS[case.state], "start_time": tested.began,
                            "misc": {"environment": tested.environment, **case.facts}}  # fmt: skip
    if case.value is not None:
        number, unit = case.value
        test["number"] = {"value": number, "unit": unit}
    if case.seconds:
        test["duration"] = case.seconds
    excerpt = "\n".join(case.evidence or ((case.says,) if case.says else ()))
    if excerpt:
        test["log_excerpt"] = excerpt[:LONGEST_EXCERPT]
    return test


def _step(text: str) -> str:
    """Return ``text`` as one step of a path: letters, digits, underscores and hyphens."""
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", text).strip("_") or "all"


def _checkout_id(tested: Tested) -> str:
    source = [tested.parts.get(f"kernel.{name}", "") for name in ("source_sha256", "patches")]
    return f"{ORIGIN}:{_digest(tested.name, *source)}"


def _build_id(tested: Tested) -> str:
    binary = tested.parts.get("kernel.binary_sha256", tested.environment)
    return f"{ORIGIN}:{_digest(tested.name, binary)}"


def _patchset(parts: Mapping[str, str]) -> str:
    """Return the digest of the user's patches as the schema has it; empty without any."""
    patches: Mapping[str, str] = json.loads(parts.get("kernel.patches") or "{}")
    users = [digest for name, digest in patches.items() if name.startswith(_USERS)]
    listed = "".join(f"{digest}\n" for digest in users)
    return hashlib.sha256(listed.encode()).hexdigest() if users else ""


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24]


FORM = Form("KCIDB's JSON", write_kcidb)
