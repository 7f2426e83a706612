"""Root of the command line: its verbs, and what happens without one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click

from firstflight.cli.exits import run_command, tell_git_bisect
from firstflight.cli.services import Services
from testbed.base import places

NEEDS = {
    "baseline list": "python",
    "baseline show": "python",
    "baseline update": "python",
    "clean": "python",
    "compare": "python",
    "completion": "nothing",
    "doctor": "kernel",
    "exec": "kernel",
    "history add": "python",
    "history list": "python",
    "history page": "python",
    "kernel add": "programs",
    "kernel bisect": "kernel",
    "kernel bisect-step": "kernel",
    "kernel build": "programs",
    "kernel export": "programs",
    "kernel import": "python",
    "kernel list": "python",
    "kernel remove": "python",
    "kernel show": "python",
    "kernel try": "kernel",
    "knobs": "python",
    "pack": "python",
    "pages build": "programs",
    "pages export": "programs",
    "pages import": "python",
    "pages list": "python",
    "pages record": "programs",
    "pages show": "programs",
    "pages verify": "programs",
    "plan": "python",
    "report": "python",
    "run": "kernel",
    "saturation": "kernel",
    "scenario": "kernel",
    "serve": "programs",
    "shell": "kernel",
    "unpack": "python",
}
NEEDS_WITH = {"unpack": {"--rerun": "kernel"}}
"""What each verb needs of the machine, as ``bootstrap/main.sh`` knows it; ``run.sh`` reads it from
``docs/command-line.md``.  A page of any kind may be a recipe, which a browser builds; what
recordings take besides, the first of them sets up (``testbed/setup/recording.py``).  NEEDS_WITH is
what a verb needs where an option is given.
"""


VERBS = {
    "baseline": "regression",
    "clean": "machine",
    "compare": "compare",
    "completion": "completion",
    "doctor": "machine",
    "exec": "exec",
    "history": "regression",
    "kernel": "kernel",
    "knobs": "knobs",
    "pack": "pack",
    "pages": "pages",
    "plan": "run",
    "report": "run",
    "run": "run",
    "saturation": "saturation",
    "scenario": "scenario",
    "serve": "serve",
    "shell": "shell",
    "unpack": "pack",
}
"""The module of each verb."""


class Verbs(click.Group):
    """Verbs that are imported when they are used: none waits for another's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of that name, if there is one."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            module = import_module(f"firstflight.cli.{VERBS[cmd_name]}")
            self.add_command(getattr(module, cmd_name))
        return super().get_command(ctx, cmd_name)


def main(arguments: Sequence[str], services: Services) -> int:
    """Do what ``arguments`` say and return the process's exit code; none rebuild Table 1."""
    code = run_command(testbed, args=list(arguments) or ["run"], prog_name="./run.sh", obj=services)
    if list(arguments[:2]) == ["kernel", "bisect-step"]:
        return tell_git_bisect(code)
    return code


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(places.describe_version(), message="%(version)s")
def testbed() -> None:
    """Reproducible page loads: real TCP, real browsers, virtual time.

    Without a verb: `run configs/paper-table1.toml`, Table 1 of the TCP Fast Open paper.
    """
