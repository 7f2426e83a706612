"""What a page's scripts ran and what it showed, for replays to be held against.

It stands in the page's folder beside the archive, and no measured load reads it.

Source: Chrome DevTools Protocol, domains Profiler (precise coverage) and Page.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.client.chromium.traffic import is_web
from testbed.client.page_coverage import without_fragment

FIDELITY_NAME = "fidelity.json"
COVERAGE = {"callCount": True, "detailed": False}
"""Parameters of ``Profiler.startPreciseCoverage``: each function that ran, however optimised."""
SCALE = 0.25
"""Of the picture: texts need not be read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page ran and showed once it was quiet.

    Attributes:
        functions: of each script's URL where in it the functions that ran begin, inline ones at
            their document's.
        picture: PNG of the window at a quarter of its size.
        window: its width and height in CSS pixels.
        wait_s: how long nothing was in flight before.
    """

    functions: Mapping[str, tuple[int, ...]]
    picture: bytes
    window: tuple[int, int]
    wait_s: float

    def renamed(self, rename: Callable[[str], str]) -> Seen:
        """Return the same with other URLs."""
        return replace(self, functions={rename(url): at for url, at in self.functions.items()})


def make_seen(
    coverage: Iterable[Mapping[str, Any]], picture: str, window: tuple[int, int], wait_s: float
) -> Seen:
    """Return what DevTools told: the coverage's scripts, and the picture in Base64."""
    ran: dict[str, list[int]] = defaultdict(list)
    for script in coverage:
        if is_web(script["url"]):
            ran[without_fragment(script["url"])] += [
                each["ranges"][0]["startOffset"]
                for each in script["functions"]
                if each["ranges"][0]["count"]
            ]
    functions = {url: tuple(sorted(at)) for url, at in sorted(ran.items()) if at}
    return Seen(functions, base64.b64decode(picture), window, wait_s)


def write_seen(folder: Path, seen: Seen) -> None:
    """Write it to a page's folder."""
    document = {"window": seen.window, "wait_s": seen.wait_s, "functions": seen.functions,
                "picture": base64.b64encode(seen.picture).decode()}  # fmt: skip
    (folder / FIDELITY_NAME).write_text(json.dumps(document) + "\n", "utf-8")


def read_seen(folder: Path) -> Seen | None:
    """Return what is in a page's folder; ``None``: nothing is, as of a page that was imported.

    Raises:
        ConfigurationError: it is damaged.
    """
    path = folder / FIDELITY_NAME
    if not path.is_file():
        return None
    try:
        told = json.loads(path.read_text("utf-8"))
        width, height = told["window"]
        functions = {str(url): tuple(map(int, at)) for url, at in told["functions"].items()}
        picture = base64.b64decode(told["picture"])
        return Seen(functions, picture, (int(width), int(height)), float(told["wait_s"]))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigurationError([f"{FIDELITY_NAME}: is damaged: {error}"]) from None
