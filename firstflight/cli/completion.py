"""The verb ``completion``, which ``run.sh`` answers itself (``firstflight.usage``)."""

from __future__ import annotations

import click

from firstflight.usage import SHELLS, render_completion
from testbed.base.errors import EXIT_OK


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print a script that completes verbs, options and names; SHELL is bash.

    Put this into ~/.bashrc: source <(/path/to/firstflight/run.sh completion bash)
    """
    click.echo(render_completion().rstrip("\n"))
    return EXIT_OK
