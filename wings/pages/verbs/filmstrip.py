"""The verb ``pages filmstrip``: what filmed loads showed and when, beside their measured twins."""

from __future__ import annotations

import html
import struct
import zlib
from pathlib import Path

import click

from testbed.base.errors import EXIT_OK, ConfigurationError
from testbed.base.whole_file import write_whole
from testbed.experiment.label import label, varying
from testbed.results.records import read_records
from wings.pages.filmstrip import Filmstrip, describe_twin, read_filmstrip

PAGE = "filmstrip.html"
_HEAD = (
    "<!doctype html><meta charset=utf-8><title>Filmstrip</title>"
    "<style>figure{display:inline-block;margin:4px}img{border:1px solid #ccc}</style>"
)


@click.command("filmstrip")
@click.argument("results", type=click.Path(path_type=Path), metavar="RESULTS")
def filmstrip_command(results: Path) -> int:
    """Show the frames of filmed loads, with Speed Index, and write RESULTS/filmstrip.html.

    A film is a load of its own, with --set 'film=[false,true]' beside the one that is measured: the
    same seed, and what its packets differ in is said.
    """
    records, parts = read_records(results), []
    names = varying([record.trial.condition for record in records])
    for record in records:
        try:
            film = read_filmstrip(results / "trials" / record.trial_id)
        except (ValueError, LookupError, OSError, struct.error, zlib.error) as error:
            raise ConfigurationError([f"{record.trial_id}: a frame is damaged: {error}"]) from None
        if film is None:
            continue
        said = (
            f"speed index {film.speed_index_ms:.0f} ms, visually complete {film.complete_ms:.0f} "
            f"ms, {len(film.frames)} frames; {describe_twin(record, records, results / 'trials')}"
        )
        title = label(record.trial, names, seeds=True)
        click.echo(f"{title}: {said}")
        parts.append(_draw(title, said, film, results))
    if not parts:
        raise ConfigurationError([f"{results}: no load was filmed; add --set 'film=[false,true]'"])
    write_whole(results / PAGE, _HEAD + "".join(parts), "make the folder writable")
    click.echo(results / PAGE)
    return EXIT_OK


def _draw(title: str, said: str, film: Filmstrip, results: Path) -> str:
    shown = zip(film.frames, film.drawn_ms, film.progress, strict=True)
    figures = (
        f'<figure><img src="{frame.relative_to(results)}" alt="" loading="lazy">'
        f"<figcaption>{at_ms:.0f} ms, {100 * done:.0f} %</figcaption></figure>"
        for frame, at_ms, done in shown
    )
    return f"<h2>{html.escape(title)}</h2><p>{html.escape(said)}</p>{''.join(figures)}"
