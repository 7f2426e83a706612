"""Verb ``serve``: a page on loopback for any tool, until it is interrupted."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click

from firstflight.cli.services import Services, pass_services
from testbed.base import log, places
from testbed.base.errors import EXIT_OK
from testbed.base.interrupt import interruptible
from testbed.model import DEFAULT_ROOT, Protocol, Replay
from testbed.root.cache import ensure_named
from testbed.root.interpreter import nginx_argv
from testbed.server.loopback import LAST_PORT, LoopbackSite, serve_loopback
from testbed.server.nginx import PROGRAMS

LOOK_S = 1.0
MOST_LINES = 20

_log = log.logger(__name__)


@click.command()
@click.argument("page", metavar="PAGE")
@click.option("--protocol", type=click.Choice(get_args(Protocol)), default="as-recorded",
              show_default=True, help="Protocol of https origins.")  # fmt: skip
@click.option("--port", type=click.IntRange(1, LAST_PORT), metavar="N",
              help="First port; each origin takes the next one. Default: free ports.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write the site, and its end, as JSON.")
@pass_services
def serve(services: Services, /, page: str, protocol: str, port: int | None, as_json: bool) -> int:
    """Serve PAGE on loopback until Ctrl-C, for a browser, curl or any other tool.

    At the end it says how the requests were answered.
    """
    # Imported here: the other verbs of the command line do not build pages.
    from testbed.runner.prepare import built_page

    cache = services.cache()
    with places.using_cache(cache):
        built = built_page(page, cache)
        # From here on an interrupt is no failure: it is how this ends.
        usr = ensure_named(DEFAULT_ROOT, cache, _log.info).usr
        program = Path(PROGRAMS["nginx-quic" if protocol == "h3" else "nginx"][0])
        nginx = nginx_argv(usr / program.parents[1].relative_to("/usr"))
        with interruptible() as interruption, serve_loopback(built, protocol, port, nginx) as site:
            _show_site(page, site, as_json)
            while not interruption.stop.wait(LOOK_S):
                site.replay()  # raises when the server has ended
            _show_replay(site.replay(), as_json)
    return EXIT_OK


def browser_argv(site: LoopbackSite) -> tuple[str, ...]:
    """Return the command of a browser that sees only the page, with a profile of its own."""
    trust: tuple[str, ...] = ()
    if site.authority is not None:
        # Chromium heeds the list only where the profile is named, too.
        trust = (f"--ignore-certificate-errors-spki-list={site.authority.read_text().strip()}",)
    if forced := [f"{each.host}:{each.port}" for each in site.listeners if each.h3]:
        trust += (f"--origin-to-force-quic-on={','.join(forced)}",)
    return ("chromium", f"--user-data-dir={site.scratch / 'profile'}",
            f"--host-resolver-rules={', '.join(site.resolver_rules)}", *trust,
            site.archive.root_url)  # fmt: skip


def curl_argv(site: LoopbackSite) -> tuple[str, ...]:
    """Return the curl command that fetches the page's first response."""
    root = site.archive.entries[0]
    origin = (root.scheme, root.host, root.port)
    (at,) = (e for e in site.listeners if (e.scheme, e.host, e.port) == origin)
    trust = () if site.tls is None else ("--cacert", str(site.tls / "authority.pem"))
    return ("curl", "--connect-to", f"{at.host}:{at.port}:{at.sockets[0]}", *trust, root.url)


def _show_site(page: str, site: LoopbackSite, as_json: bool) -> None:
    if as_json:
        facts = {
            "page": page, "url": site.archive.root_url, "resolver_rules": site.resolver_rules,
            "tls": None if site.tls is None else str(site.tls),
            "listeners": [asdict(each) | {"address": each.addresses[0]} for each in site.listeners],
        }  # fmt: skip
        click.echo(json.dumps(facts))
        return
    click.echo(f"{page}: {site.archive.root_url}")
    for client, argv in (("a browser", browser_argv(site)), ("curl", curl_argv(site))):
        click.echo(f"\n{client}:\n  {shlex.join(argv)}")
    click.echo("\nCtrl-C ends it")


def _show_replay(replay: Replay, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"replay": asdict(replay)}))
        return
    click.echo(
        f"{replay.exact} requests answered exactly, {len(replay.inexact)} inexactly, "
        f"{len(replay.missed)} missed"
    )
    lines = [f"inexact: {each.asked}\n     by: {each.answered}" for each in replay.inexact]
    lines += [f"missed:  {request}" for request in replay.missed]
    for line in lines[:MOST_LINES]:
        click.echo(line)
    if len(lines) > MOST_LINES:
        click.echo(f"... and {len(lines) - MOST_LINES} more")
