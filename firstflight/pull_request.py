"""Comment of a run on a pull request, as GitHub's API has it: written once, and then kept current.

``python -m firstflight.pull_request NAME FILE``, which action.yml calls where a workflow runs: what
that is of is in the runner's variables.  It needs no Python packages.  The comment is the run's own
by its first line, which names it; a run that may not comment says so, and has not failed by it.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LARGEST = 65_536
"""Characters that a comment holds."""
PER_PAGE = 100
_TIMEOUT_S = 30.0
_CUT = "\n\nMore of it is in the job's summary.\n"


def comment(name: str, text: str, environment: Mapping[str, str]) -> str:
    """Write ``text`` as the comment ``name``, and return in words what became of it."""
    number = read_number(Path(environment["GITHUB_EVENT_PATH"]))
    if number is None:
        return "no comment: this run is of no pull request"
    mark = f"<!-- firstflight: {name} -->"
    body = f"{mark}\n{text}"
    if len(body) > LARGEST:
        body = body[: LARGEST - len(_CUT)] + _CUT
    issues = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}/issues"
    try:
        ours = next(_list_marked(f"{issues}/{number}/comments", mark, environment), None)
        if ours is None:
            _ask("POST", f"{issues}/{number}/comments", environment, {"body": body})
            return "commented on the pull request"
        _ask("PATCH", f"{issues}/comments/{ours}", environment, {"body": body})
        return "brought the comment on the pull request up to date"
    except (OSError, ValueError) as error:
        return (
            f"::warning::no comment on the pull request: {error}; a workflow needs `permissions: "
            "pull-requests: write`, which pull requests from forks do not get"
        )


def read_number(event: Path) -> int | None:
    """Return the number of the pull request that a workflow runs for, if it does for one."""
    number = json.loads(event.read_text("utf-8")).get("pull_request", {}).get("number")
    return number if isinstance(number, int) else None


def _list_marked(address: str, mark: str, environment: Mapping[str, str]) -> Iterator[int]:
    """Yield the comments that begin with ``mark`` and that a program wrote, as whom we write."""
    page = 1
    while found := _ask("GET", f"{address}?per_page={PER_PAGE}&page={page}", environment):
        yield from (each["id"] for each in found
                    if each["body"].startswith(mark) and each["user"]["type"] == "Bot")  # fmt: skip
        if len(found) < PER_PAGE:
            return
        page += 1


def _ask(method: str, address: str, environment: Mapping[str, str], sent: Any = None) -> Any:
    headers = {"Accept": "application/vnd.github+json", "Content-Type": "application/json",
               "Authorization": f"Bearer {environment['TOKEN']}"}  # fmt: skip
    data = None if sent is None else json.dumps(sent).encode()
    request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


def main(arguments: Sequence[str]) -> int:
    """Comment, and say what became of it."""
    name, file = arguments
    print(comment(name, Path(file).read_text("utf-8"), os.environ))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
