"""Results of one run as netdev's CI collects them from an executor of others.

Its collector fetches a list of runs, and of each run a JSON file such as this: who ran what when,
and a list of tests, each with its own cases (github.com/linux-netdev/nipa, contest/).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from analysis.formats.suites import Case, Form, Suite

EXECUTOR = "firstflight"
_RESULTS = {"passed": "pass", "failed": "fail", "error": "fail", "skipped": "skip"}


def write_netdev(suites: Sequence[Suite]) -> str:
    """Return the JSON document of a run: a test for each suite, named by its topic.

    The branch is the name of the last kernel.  A link is the results folder, which is to lie beside
    the document.  No test has a ``retry``: in virtual time a second run has equal bits.  ``name``
    of a case is what our own verbs take, such as ``net/tls``.
    """
    tested = [suite.tested for suite in suites if suite.tested is not None]
    document: dict[str, Any] = {"executor": EXECUTOR, "branch": tested[-1].name if tested else "",
                                "start": min((each.began for each in tested), default=""),
                                "end": max((each.ended for each in tested), default=""),
                                "results": [_test(suite, len(suites) > 1)
                                            for suite in suites]}  # fmt: skip
    if tested:
        document["link"] = tested[-1].folder
    return json.dumps(document, indent=1) + "\n"


def name_for_netdev(text: str) -> str:
    """Return ``text`` as netdev's CI names tests: letters and digits, all else is a hyphen."""
    return re.sub(r"[^0-9a-zA-Z]+", "-", text).strip("-") or "no-name"


def _test(suite: Suite, several: bool) -> dict[str, Any]:
    states = {case.state for case in suite.cases}
    state = "failed" if states & {"failed", "error"} else "passed"
    if states <= {"skipped"}:
        state = "skipped"
    name = f"{suite.topic} {suite.tested.name}" if several and suite.tested else suite.topic
    return {"test": name_for_netdev(name), "group": EXECUTOR, "result": _RESULTS[state],
            "link": suite.tested.folder if suite.tested is not None else "",
            "results": [_subtest(case) for case in suite.cases]}  # fmt: skip


def _subtest(case: Case) -> dict[str, Any]:
    subtest: dict[str, Any] = {"test": name_for_netdev(case.name), "name": case.name,
                               "result": _RESULTS[case.state]}  # fmt: skip
    return subtest | ({"time": round(case.seconds)} if case.seconds else {})


FORM = Form("a run for its results.json", write_netdev)
