"""Root of the command line: its verbs, and what happens without one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from firstflight.cli.exits import run_command, tell_git_bisect
from firstflight.cli.services import Services
from testbed.base import places

VERBS = {
    "baseline list": ("regression", "python"),
    "baseline show": ("regression", "python"),
    "baseline update": ("regression", "python"),
    "clean": ("machine", "python"),
    "compare": ("compare", "python"),
    "completion": ("completion", "nothing"),
    "doctor": ("machine", "kernel"),
    "exec": ("exec", "kernel"),
    "history add": ("regression", "python"),
    "history list": ("regression", "python"),
    "history page": ("regression", "python"),
    "import": ("root", "file"),
    "kernel add": ("kernel", "programs"),
    "kernel bisect": ("kernel", "kernel"),
    "kernel bisect-step": ("kernel", "kernel"),
    "kernel build": ("kernel", "programs"),
    "kernel export": ("kernel", "programs"),
    "kernel import": ("kernel", "python"),
    "kernel list": ("kernel", "python"),
    "kernel remove": ("kernel", "python"),
    "kernel show": ("kernel", "python"),
    "kernel try": ("kernel", "kernel"),
    "knobs": ("knobs", "python"),
    "pack": ("pack", "python"),
    "pages build": ("pages", "programs"),
    "pages export": ("pages", "programs"),
    "pages import": ("pages", "python"),
    "pages list": ("pages", "python"),
    "pages record": ("pages", "programs"),
    "pages show": ("pages", "programs"),
    "pages verify": ("pages", "programs"),
    "plan": ("run", "python"),
    "report": ("run", "python"),
    "root assemble": ("root", "python"),
    "root export": ("root", "kernel"),
    "root import": ("root", "file"),
    "root list": ("root", "python"),
    "root update": ("root", "python"),
    "run": ("run", "kernel"),
    "saturation": ("saturation", "kernel"),
    "scenario": ("scenario", "kernel"),
    "serve": ("serve", "programs"),
    "shell": ("shell", "kernel"),
    "unpack": ("pack", "python"),
}
"""The module of each verb, and what it needs of the machine, as ``bootstrap/main.sh`` knows it.

``run.sh`` reads that from ``docs/command-line.md``.  A page of any kind may be a recipe, which a
browser builds; what recordings take besides, the first of them sets up
(``testbed/setup/recording.py``).
"""
NEEDS = {name: needs for name, (_, needs) in VERBS.items()}
NEEDS_WITH = {"pack": {"--with-root": "kernel"}, "unpack": {"--rerun": "kernel"}}
"""What a verb needs where an option is given."""
_MODULES = {name.split()[0]: module for name, (module, _) in VERBS.items()}


class Verbs(click.Group):
    """Verbs that are imported when they are used: none waits for another's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of that name, if there is one."""
        if cmd_name in _MODULES and cmd_name not in self.commands:
            module = import_module(f"firstflight.cli.{_MODULES[cmd_name]}")
            name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
            self.add_command(getattr(module, name))
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
