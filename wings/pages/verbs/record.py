"""The verb ``pages record``: a live page, loaded once in a real browser, becomes a page of ours."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from testbed.archive.reading import split_url
from testbed.base import places
from testbed.base.errors import EXIT_OK, ConfigurationError
from testbed.base.scratch import scratch_folder
from testbed.model.device import DEVICES
from testbed.pages.catalogue import name_page
from wings.pages.importing.sanitiser import ascii_host
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.recorder import RecordOrder, record
from wings.pages.recorder.driver import set_up_recording
from wings.pages.verbs.import_page import report_page
from wings.pages.verify import host_problem

PLAIN_EVERY_S = 2.0
_HOST = re.compile(r"(?<=://)[^/?#:@\[]*[^\x00-\x7f][^/?#:@]*")
_ADDRESS = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+\])(:[0-9]+)?(?![^/?#])")
_VIEWPORT = re.compile(r"([0-9]{1,5})[xX]([0-9]{1,5})")


class _Viewport(click.ParamType[tuple[int, int]]):
    """``1366x768``: width and height in CSS pixels."""

    name = "WxH"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        match = _VIEWPORT.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is no viewport; write it like 1366x768", param, ctx)
        return int(match[1]), int(match[2])


def _split(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the rules in ``texts``, each of which is a list with commas, as browsers take them."""
    return tuple(rule.strip() for text in texts for rule in text.split(","))


@click.command("record")
@click.argument("url", metavar="URL")
@click.option("--name", required=True, help="The page's name, which is that of its folder.")
@click.option("--title", help="Its title; default: the page's own.")
@click.option("--wait", "wait_s", type=float, default=2.0, show_default=True, metavar="S",
              help="End when nothing was in flight for S seconds after the load.")  # fmt: skip
@click.option("--timeout", "timeout_s", type=float, default=60.0, show_default=True, metavar="S",
              help="Longest time for the whole recording.")  # fmt: skip
@click.option("--device", type=click.Choice(list(DEVICES)),
              help="What the browser is, in replays too; default: itself, 1366x768.")  # fmt: skip
@click.option("--viewport", type=_Viewport(), help="Default: the device's.")
@click.option("--user-agent", metavar="UA", help="What the browser calls itself.")
@click.option("--scroll", is_flag=True, help="Scroll to the end after the load event.")
@click.option("--pin", "pinned", is_flag=True, help="Pin clocks and random numbers of scripts.")
@click.option("--anonymize", is_flag=True, help="Keep numbers and host names only, no contents.")
@click.option("--keep-secrets", is_flag=True, help="Keep cookies, tokens and the like.")
@click.option("--licence", metavar="TEXT", help="Under what terms the contents may be used.")
@click.option("--replace", is_flag=True, help="Replace the page of this name.")
@click.option("--resolver-rule", "resolver_rules", multiple=True, metavar="RULE",
              callback=_split,
              help="Host resolver rule of the browser, such as 'MAP * 127.0.0.1:8080', or a "
                   "list of them.")  # fmt: skip
@click.option(
    "--allow-private",
    "allowed",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Let the page reach this host of your machine or network, beside its own.",
)
@click.option("--ca", "authority", type=click.Path(path_type=Path), metavar="FILE",
              help="Trust the private authority whose certificate FILE holds as PEM.")  # fmt: skip
def record_command(url: str, name: str, title: str | None, licence: str | None, anonymize: bool,
                   keep_secrets: bool, replace: bool, **options: Any) -> int:  # fmt: skip
    """Record the page at URL with a fresh headless Chromium.

    Cookies, tokens and the like are removed, unless you give --keep-secrets.  The recorded contents
    belong to their owners: with --anonymize only numbers and host names are kept.
    """
    order = RecordOrder(url=_HOST.sub(_ascii_host, url, count=1), **options)
    folder = _check(order, name, replace=replace, contents=not anonymize)
    set_up_recording()  # before there is a live line, in which a password would be asked for
    with scratch_folder("record") as scratch:
        # The browser may be another user than this one.
        scratch.chmod(0o711)
        with telling() as tell:
            recording = record(order, scratch, tell)
        how = WriteOptions(title, licence, anonymize, keep_secrets, replace)
        written = write_page(folder, recording, how)
    report_page(folder, written)
    return EXIT_OK


def _check(order: RecordOrder, name: str, *, replace: bool, contents: bool) -> Path:
    """Return the folder of the new page, before anything is loaded; all problems at once."""
    problems = list(order.problems)
    if literal := _ADDRESS.match(order.url):
        problems = [_no_name(order.url, literal[1], literal[2], literal[3] or "", "an address")]
    # What keeps numbers only gives hosts names of its own.
    if not problems and contents:
        scheme, host, port, _ = split_url(order.url)
        if problem := host_problem(host):
            problems.append(_no_name(order.url, scheme, host, f":{port}", problem))
    try:
        folder = name_page(places.PAGES, name, replace=replace)
    except ConfigurationError as error:
        problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return folder


def _no_name(url: str, scheme: str, host: str, port: str, problem: str) -> str:
    return (
        f"cannot replay {url}: {host}: {problem}; use a name that only this browser knows: "
        f"{scheme}://www.mine.test{port}/ with --resolver-rule 'MAP www.mine.test {host}'"
    )


def _ascii_host(match: re.Match[str]) -> str:
    try:
        return ascii_host(match[0])
    except UnicodeError:
        return match[0]  # which is refused with the other problems


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """Yield what shows the progress: one live line on a terminal, else a few lines."""
    if not sys.stderr.isatty():
        yield throttled(partial(click.echo, err=True))
        return
    # Imported here: it is slow, and needed on a terminal only.
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text("starting the browser")) as status:
        yield lambda line: status.update(Text(line))


def throttled(
    write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> Callable[[str], None]:
    """Return ``write``, but not more often than every ``PLAIN_EVERY_S``."""
    next_s = float("-inf")

    def tell(line: str) -> None:
        nonlocal next_s
        if clock() >= next_s:
            write(line)
            next_s = clock() + PLAIN_EVERY_S

    return tell
