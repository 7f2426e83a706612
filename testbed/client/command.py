"""The command client: a program of the user's own, started by words and believed by its output.

What it prints on standard output is all that is read of it, a line each: ``plt_ms=NUMBER`` or
``plt_s=NUMBER`` once, ``version=TEXT`` if it likes, and for each request a JSON object
(docs/own-client.md).  Everything else about the load is the server's account and the capture's.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.archive.reading import Entry
from testbed.base.har_format import UNKNOWN
from testbed.client.har_file import ClientExchange, write_har
from testbed.client.interface import AUTHORITY_NAME, LoadError, LoadOrder, client_environment
from testbed.client.page_coverage import BODILESS, describe_load, list_altered
from testbed.client.process import run_logged
from testbed.client.wget2 import list_urls
from testbed.model import HAR_FILE, KEYS_FILE, PageLoad, RequestTiming
from testbed.model.command import fill_words, split_words

OUTPUT_FILE = "client.out"
KEPT = "command-"
"""How the names begin of the files that a command leaves."""
OWN_FOLDER = "own"
"""Where a bundle has the user's files."""
LARGEST_OUTPUT = 16 << 20
SHOWN = 80
NO_AUTHORITY = "/dev/null"
_NUMBERS = {"plt_ms": 1.0, "plt_s": 1000.0}
_NEEDED = {"url": str, "status": int, "start_ms": float, "end_ms": float}
_OPTIONAL = {"transfer_bytes": int, "body_bytes": int, "connection": str}
_MOST = 1 << 53
_KINDS = {str: "text", int: "a whole number from 0", float: "a number from 0"}


class Command:
    """PLT is what the program says; it can be no longer than the program ran."""

    name = "command"
    programs = ()
    honours = frozenset({"tls_resumption", "x25519", "x25519mlkem768"})  # as its program does
    tcp_alone = False  # nobody knows what a user's program does

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page; see ``Client.load``.

        Raises:
            LoadError: it ended with another status than 0, or printed what it must not.
        """
        kept_folder = order.scratch / "out"
        kept_folder.mkdir()
        kept_folder.chmod(0o777)  # the program is another user
        if order.opening.keys:
            keys = order.out / KEYS_FILE
            keys.touch()
            keys.chmod(0o666)
        # It may plant nothing else where its output is read, and the HAR written.
        order.out.chmod(0o755)
        words = fill_words(split_words(order.command), load_values(order, kept_folder))
        output = order.out / OUTPUT_FILE
        started_ns = time.time_ns()
        try:
            run_logged(
                (*order.prefix, *words),
                log=order.out / "client.log",
                env=client_environment(order),
                cwd=order.scratch,
                timeout_s=order.timeout_s,
                output=output,
            )
        finally:
            keep_files(kept_folder, order.out)
        ended_ns, started_ns = time.time_ns(), began_ns(order, started_ns)
        ran_ms = (ended_ns - started_ns) / 1e6
        report = parse_output(read_output(output))
        if report.plt_ms > ran_ms:
            raise LoadError(
                f"command: plt_ms is {report.plt_ms:g}, and it ran for {ran_ms:g} ms; is it in "
                "another unit?"
            )
        page = order.archive
        lengths = [
            (e.timing.url, e.body_bytes) for e in report.exchanges if e.body_bytes != UNKNOWN
        ]
        timings = tuple(exchange.timing for exchange in report.exchanges)
        load = describe_load(
            self.name, report.version, page, timings, report.plt_ms,
            list_altered(page, lengths, _length),
        )  # fmt: skip
        write_har(order.out / HAR_FILE, load, page.root_url, started_ns / 1e9, report.exchanges)
        return load


def began_ns(order: LoadOrder, ordered_ns: int) -> int:
    """Return when a command began, in ns of CLOCK_REALTIME: as noted, or as it was ordered to."""
    if order.began is None or not order.began.exists():
        return ordered_ns
    return int(order.began.read_text())


def load_values(order: LoadOrder, kept_folder: Path) -> dict[str, str]:
    """Return what the placeholders of a command stand for; files among it are written.

    ``kept_folder`` is the folder for files to keep.
    """
    urls = order.scratch / "urls"
    urls.write_text("".join(f"{url}\n" for url in list_urls(order.archive)), "utf-8")
    return {
        "url": order.archive.root_url,
        "urls": str(urls),
        "ca": NO_AUTHORITY if order.tls is None else str(order.tls / AUTHORITY_NAME),
        "out": str(kept_folder),
        "folder": str(order.bundle / OWN_FOLDER),
        "scratch": str(order.scratch),
        "seed": str(order.seed),
        "timeout_s": f"{order.timeout_s:g}",
        "protocol": order.protocol,
        "tls_version": order.tls_version,
    }


def keep_files(folder: Path, out: Path) -> None:
    """Copy the regular files that a command left in ``folder`` to ``out``, named ``command-*``."""
    if folder.is_symlink() or not folder.is_dir():  # a command may have put another in its place
        return
    for file in sorted(folder.iterdir()):
        if file.is_file() and not file.is_symlink():
            shutil.copyfile(file, out / f"{KEPT}{file.name}")


@dataclass(frozen=True, slots=True)
class Told:
    """What a command said of its load."""

    plt_ms: float
    version: str
    exchanges: tuple[ClientExchange, ...]


def read_output(path: Path) -> str:
    """Return what a command printed.

    Raises:
        LoadError: it is too much, or no UTF-8 text.
    """
    size = path.stat().st_size
    if size > LARGEST_OUTPUT:
        raise LoadError(f"command: {size} bytes on standard output; allowed: {LARGEST_OUTPUT}")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise LoadError(f"command: its standard output is no UTF-8 text: {error}") from None


def parse_output(text: str) -> Told:
    """Return what a command printed, by its contract.

    Raises:
        LoadError: a line that is none of it, or no load time; with its number and its text.
    """
    plt_ms: float | None = None
    version = "not told"
    exchanges: list[ClientExchange] = []
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.strip().partition("=")
        if not line.strip():
            continue
        if name in _NUMBERS and equals:
            if plt_ms is not None:
                raise _wrong(number, line, "the load time was there already")
            plt_ms = _read_time(number, line, value) * _NUMBERS[name]
        elif name == "version" and value.strip():
            version = value.strip()
        elif line.lstrip().startswith("{"):
            exchanges.append(_read_request(number, line))
        else:
            raise _wrong(
                number, line, "not plt_ms=, plt_s=, version= nor a JSON object; print other words "
                "on standard error",
            )  # fmt: skip
    if plt_ms is None:
        raise LoadError("command: it printed no plt_ms=NUMBER on standard output")
    return Told(plt_ms, version, tuple(exchanges))


def _read_time(number: int, line: str, value: str) -> float:
    try:
        time_ms = math.nan if "_" in value else float(value)
    except ValueError:
        time_ms = math.nan
    if not (math.isfinite(time_ms) and time_ms > 0):
        raise _wrong(number, line, "not a time above 0")
    return time_ms


def _read_request(number: int, line: str) -> ClientExchange:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(number, line, f"not JSON: {error}") from None
    problems = list(_wrong_fields(fields)) if isinstance(fields, Mapping) else ["not an object"]
    if not problems and fields["end_ms"] < fields["start_ms"]:
        problems = ["end_ms is before start_ms"]
    if problems:
        raise _wrong(number, line, "; ".join(problems))
    return ClientExchange(
        RequestTiming(
            url=fields["url"],
            status=fields["status"],
            start_ms=float(fields["start_ms"]),
            end_ms=float(fields["end_ms"]),
            transfer_bytes=fields.get("transfer_bytes"),
            connection=fields.get("connection"),
        ),
        body_bytes=fields.get("body_bytes", UNKNOWN),
    )


def _wrong_fields(fields: Mapping[str, Any]) -> Iterable[str]:
    kinds = _NEEDED | _OPTIONAL
    for name in fields:
        if name not in kinds:
            yield f"no field is named {name!r}; fields: {', '.join(kinds)}"
    for name, kind in kinds.items():
        if name not in fields:
            if name in _NEEDED:
                yield f"{name} is missing"
        elif not _is_of(kind, fields[name]):
            yield f"{name} is not {_KINDS[kind]}"


def _is_of(kind: type, value: object) -> bool:
    if kind is str or isinstance(value, bool):
        return kind is str and isinstance(value, str)
    return isinstance(value, int if kind is int else int | float) and 0 <= value < _MOST


def _wrong(number: int, line: str, why: str) -> LoadError:
    shown = line.strip()
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    return LoadError(f"command: line {number} of its standard output, {shown!r}: {why}")


def _length(resource: Entry) -> int:
    """Return the bytes of the body that a response to GET brings."""
    return 0 if resource.status in BODILESS else resource.body_size
