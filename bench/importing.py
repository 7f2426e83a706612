"""Import of a large HAR: time and memory, from a process of its own."""

from __future__ import annotations

import base64
import gzip
import json
import random
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]

from bench.result import Result, judge
from bench.work import Work
from testbed.base import proc
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page

REQUESTS = 500
BODY_BYTES = 20_000_000
LIMIT_S = 5.0
LIMIT_BYTES = 500_000_000
RUNS = 3
_TIMEOUT_S = 300.0
# How many of 20 requests are of each kind; the shares of bytes are those of common pages.
_KINDS = ("text/html", *["text/css"] * 2, *["text/javascript"] * 6, *["image/jpeg"] * 11)
_SIZES = {"text/html": 40, "text/css": 50, "text/javascript": 60, "image/jpeg": 45}


def measure(work: Work) -> Result:
    """Measure a HAR of ``REQUESTS`` requests and ``BODY_BYTES`` of decoded bodies, made here."""
    folder = work.folder("importing")
    path = folder / "large.har"
    decoded = write_har(path, "gzip")
    runs = [_measure_once(path, folder / f"page{n}") for n in range(1 if work.quick else RUNS)]
    wall_s = sorted(run["wall_s"] for run in runs)[len(runs) // 2]
    peak_bytes = max(run["peak_bytes"] for run in runs)
    slowest = _slowest(folder, quick=work.quick)
    return Result(
        name="importing",
        asked=f"{REQUESTS} requests, {BODY_BYTES / 1e6:g} MB: {LIMIT_S:g} s, "
        f"{LIMIT_BYTES / 1e6:g} MB",
        measured=f"{wall_s:.2f} s, {peak_bytes / 1e6:.0f} MB{slowest}",
        verdict=judge(wall_s < LIMIT_S and peak_bytes < LIMIT_BYTES),
        n=len(runs),
        how=f"median time and largest memory of a process that imports a HAR of "
        f"{path.stat().st_size / 1e6:.1f} MB with {decoded / 1e6:.1f} MB of bodies, "
        "from its start to the page on disk; texts under gzip. Beside it, beyond what is asked, "
        "the same under brotli of quality 11: a HAR has decoded texts, and to reach the recorded "
        "size each has to go through the slowest of compressors again, in two threads",
        real_time=True,
        details={"runs": runs, "har_bytes": path.stat().st_size},
    )


def _slowest(folder: Path, *, quick: bool) -> str:
    """Return what the same takes with the texts under brotli, as words to append."""
    if quick:
        return ""
    path = folder / "brotli.har"
    write_har(path, "br")
    return f"; brotli 11: {_measure_once(path, folder / 'brotli')['wall_s']:.1f} s"


def write_har(path: Path, coding: str) -> int:
    """Write a HAR as DevTools does, and return the decoded bytes of its bodies.

    ``coding`` of texts is ``gzip`` (quality 6) or ``br`` (quality 11).
    """
    chance = random.Random(0)  # noqa: S311 - the same file every time, no secret
    weights = [_SIZES[_KINDS[index % len(_KINDS)]] for index in range(REQUESTS)]
    entries, decoded = [], 0
    for index, weight in enumerate(weights):
        size = BODY_BYTES * weight // sum(weights)
        entries.append(_entry(index, _KINDS[index % len(_KINDS)], size, chance, coding))
        decoded += size
    page = {"id": "page_1", "startedDateTime": _moment(0), "title": "Large", "pageTimings": {}}
    log = {"version": "1.2", "creator": {"name": "WebInspector", "version": "1"}, "pages": [page]}
    path.write_text(json.dumps({"log": log | {"entries": entries}}), encoding="utf-8")
    return decoded


def _entry(index: int, mime: str, size: int, chance: random.Random, coding: str) -> dict[str, Any]:
    content: dict[str, Any] = {"size": size, "mimeType": mime}
    headers = [{"name": "content-type", "value": mime}]
    if mime.startswith("image/"):
        body = chance.randbytes(size)
        content |= {"text": base64.b64encode(body).decode(), "encoding": "base64"}
    else:
        text = _text(size, chance)
        content["text"] = text
        plain = text.encode()
        body = gzip.compress(plain, 6) if coding == "gzip" else brotli.compress(plain, quality=11)
        headers.append({"name": "content-encoding", "value": coding})
    headers.append({"name": "content-length", "value": str(len(body))})
    url = f"https://h{index % 20}.bench.example/{index}"
    return {
        "pageref": "page_1",
        "startedDateTime": _moment(index),
        "time": 30,
        "_initiator": {"type": "parser", "url": "https://h0.bench.example/0"},
        "request": {"method": "GET", "url": url, "headers": [], "bodySize": 0},
        "response": {"status": 200, "httpVersion": "h2", "headers": headers, "content": content,
                     "redirectURL": "", "headersSize": -1, "bodySize": -1,
                     "_transferSize": len(body) + 60},
    }  # fmt: skip


def _text(size: int, chance: random.Random) -> str:
    """Return text that compresses about as scripts do, to a fourth."""
    words = [f"word{chance.randrange(3000)}" for _ in range(size // 6)]
    return " ".join(words)[:size].ljust(size)


def _moment(ms: int) -> str:
    return f"2026-01-01T00:00:{ms // 1000:02d}.{ms % 1000:03d}Z"


def _measure_once(path: Path, target: Path) -> dict[str, float]:
    argv = (sys.executable, "-m", "bench.importing", str(path), str(target))
    started = time.monotonic()
    completed = proc.run(argv, timeout_s=_TIMEOUT_S)
    return {"wall_s": time.monotonic() - started, "peak_bytes": float(completed.stdout)}


def main(argv: Sequence[str]) -> None:
    """Import ``argv[0]`` as the page ``argv[1]`` and print the most memory that this took."""
    source, target = argv
    write_page(Path(target), read_recording(Path(source)), WriteOptions())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
