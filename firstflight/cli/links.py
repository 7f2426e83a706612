"""Verb ``links``: lists profiles of links, with what they come to, and imports delays."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from analysis.shortflow import predict_fetch_ms
from analysis.tables.columns import Column
from analysis.words import MISSING
from firstflight.cli.listing import print_columns
from testbed.base.errors import EXIT_OK, ConfigurationError
from testbed.experiment import emulators
from testbed.experiment.profiles import Profile, describe_unknown, list_profiles, read_profile
from testbed.kinds.experiment_file import toml_text
from testbed.model import LinkSpec, TcpSpec
from testbed.model.line import line_ms
from testbed.traces.delays import list_steps, read_delays

REQUEST_BYTES, RESPONSE_BYTES = 400, 10_000
WIDTH = 88
_NOTES = (
    "bdp: rate times round trip.  buffer: how long a packet waits behind a full one.  packet: of "
    f"{LinkSpec().mtu_bytes} B.  fetch: {RESPONSE_BYTES} B on a cold connection, asked for in "
    f"{REQUEST_BYTES} B, without DNS and TLS and as if no packet were lost; tfo: with Fast Open "
    f"and a cookie.  {MISSING}: no closed form.  *: the source was not read for this file."
)
_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


@click.group(invoke_without_command=True)
@_json
@click.pass_context
def links(context: click.Context, as_json: bool) -> None:
    """Link profiles, and delays by interval (docs/links.md); without a verb, list the profiles."""
    if context.invoked_subcommand is None:
        _list(as_json)


@links.command("list")
@_json
def list_command(as_json: bool) -> int:
    """List every profile, with what follows from its numbers."""
    _list(as_json)
    return EXIT_OK


@links.command()
@click.argument("name")
@_json
def show(name: str, as_json: bool) -> int:
    """Show a profile, its source and what follows from its numbers.

    NAME is one of those listed, or the path of a file of your own.
    """
    profile = _find(name)
    about = _describe(profile)
    if as_json:
        click.echo(json.dumps(about, indent=2))
        return EXIT_OK
    click.echo(f"{profile.name}: of {profile.whose or 'nobody named'}, {profile.date or MISSING}")
    source = f"source: {profile.source or MISSING}"
    for text in (profile.about, source if profile.verified else f"{source} (not read)"):
        click.echo(textwrap.indent(textwrap.fill(text, WIDTH - 4), "    "))
    click.echo("\n[link]")
    for knob, value in profile.values.items():
        click.echo(f"{knob} = {json.dumps(value) if isinstance(value, str) else f'{value:.10g}'}")
    click.echo("")
    for key, value in about["comes_to"].items():
        click.echo(f"{key:20} {MISSING if value is None else f'{value:,.10g}'}")
    return EXIT_OK


@links.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--every", "every_ms", type=click.IntRange(1, 60_000), default=10, show_default=True,
              metavar="MS", help="How long each delay lasts.")  # fmt: skip
@click.option("--until", "until_s", type=click.FloatRange(0.01, 600), default=30.0,
              show_default=True, metavar="S", help="How long a load may take.")  # fmt: skip
def delays(file: Path, every_ms: int, until_s: float) -> int:
    """Turn a file of one-way delays into lines for an experiment file.

    FILE has a delay in ms on each line, as LeoReplayer's have; after the last it begins again.
    """
    found = read_delays(file)
    click.echo(f"[link]\nrtt_ms = {2 * found[0]:g}")
    click.echo(f"changes = {json.dumps(list_steps(found, every_ms, until_s))}")
    return EXIT_OK


@links.command("from-dummynet")
@click.argument("down", metavar="PIPE")
@click.argument("up", required=False)
def from_dummynet(down: str, up: str | None) -> int:
    """Turn pipes of dummynet into a profile, and say what differs.

    PIPE is towards the client, UP from it, if it is another: 'pipe 1 config bw 4Mbit/s delay 10ms
    queue 128Kbytes'.
    """
    return _print_translation("dummynet", emulators.from_dummynet(down, up), down, up)


@links.command("from-mininet")
@click.argument("down", metavar="PARAMETERS")
@click.argument("up", required=False)
def from_mininet(down: str, up: str | None) -> int:
    """Turn parameters of Mininet's TCLink into a profile, and say what differs.

    PARAMETERS are towards the client, UP from it, if they are others: "bw=4, delay='10ms',
    max_queue_size=100".
    """
    return _print_translation("Mininet", emulators.from_mininet(down, up), down, up)


def _print_translation(whose: str, link: emulators.Translation, *texts: str | None) -> int:
    said = (*(f"{whose}: {' '.join(text.split())}" for text in texts if text), *link.differs)
    for line in (line for text in said for line in textwrap.wrap(text, WIDTH)):
        click.echo(f"# {line}")
    click.echo("\n[link]")
    for knob, value in link.values.items():
        click.echo(f"{knob} = {toml_text(value)}")
    return EXIT_OK


def _find(name: str) -> Profile:
    if name.endswith(".toml"):
        return read_profile(Path(name))
    there = list_profiles()
    if name not in there:
        raise ConfigurationError([f"links show {name}: {describe_unknown(name, [*there])}"])
    return read_profile(there[name])


def _list(as_json: bool) -> None:
    profiles = [read_profile(path) for _, path in sorted(list_profiles().items())]
    described = [_describe(profile) for profile in profiles]
    if as_json:
        click.echo(json.dumps(described, indent=2))
        return
    print_columns(_columns(profiles, [about["comes_to"] for about in described]))
    click.echo("\n" + textwrap.fill(_NOTES, WIDTH))


def _describe(profile: Profile) -> dict[str, Any]:
    plain = asdict(profile) | {"date": profile.date and profile.date.isoformat()}
    return plain | {"link": asdict(profile.link), "comes_to": come_to(profile.link)}


def come_to(link: LinkSpec) -> dict[str, float | None]:
    """Return what the numbers of ``link`` come to; ``None``: there is no closed form."""
    return {"bdp_down_bytes": link.down_kbit * link.rtt_ms / 8,
            "bdp_up_bytes": link.up_kbit * link.rtt_ms / 8,
            "buffer_down_ms": link.buffer_bytes * 8 / link.down_kbit,
            "buffer_up_ms": link.buffer_bytes * 8 / link.up_kbit,
            "packet_down_ms": line_ms(link, "down", link.mtu_bytes),
            "packet_up_ms": line_ms(link, "up", link.mtu_bytes),
            "cold_fetch_ms": _fetch(link, tfo=False),
            "cold_fetch_tfo_ms": _fetch(link, tfo=True)}  # fmt: skip


def _fetch(link: LinkSpec, *, tfo: bool) -> float | None:
    try:
        lossless = replace(link, loss_pct=0.0)
        return predict_fetch_ms(lossless, TcpSpec(tfo=tfo), REQUEST_BYTES, RESPONSE_BYTES)
    except ConfigurationError:
        return None


def _columns(
    profiles: Sequence[Profile], comes_to: Sequence[dict[str, float | None]]
) -> list[Column]:
    def come(key: str) -> list[str]:
        values = [each[key] for each in comes_to]
        return [MISSING if value is None else _short(value) for value in values]

    links = [profile.link for profile in profiles]
    return [
        Column("profile", [f"{p.name}{'' if p.verified else ' *'}" for p in profiles], left=True),
        Column("down kbit/s", [_short(link.down_kbit) for link in links]),
        Column("up", [_short(link.up_kbit) for link in links]),
        Column("RTT ms", [f"{link.rtt_ms:g}" for link in links]),
        Column("loss %", [f"{link.loss_pct:g}" for link in links], 1),
        Column("bdp B", come("bdp_down_bytes"), 2),
        Column("buffer ms", come("buffer_down_ms"), 3),
        Column("up", come("buffer_up_ms"), 3),
        Column("packet ms", come("packet_down_ms"), 4),
        Column("up", come("packet_up_ms"), 4),
        Column("fetch ms", come("cold_fetch_ms")),
        Column("tfo", come("cold_fetch_tfo_ms")),
    ]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
