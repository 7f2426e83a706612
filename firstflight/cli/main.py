"""Root of the command line: its verbs, and what happens without one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from firstflight.cli.exits import run_command, tell_git_bisect
from firstflight.cli.services import Services
from testbed.base import places
from testbed.base.wings import provided

VERBS = {
    "baseline": "baseline",
    "budgets": "budgets",
    "clean": "machine",
    "compare": "compare",
    "completion": "completion",
    "doctor": "machine",
    "exec": "exec",
    "import": "root",
    "knobs": "knobs",
    "links": "links",
    "merge": "merge",
    "plan": "run",
    "report": "run",
    "root": "root",
    "run": "run",
    "serve": "serve",
    "shell": "shell",
    "store": "store",
    "verify": "verify",
}
"""The module of each verb or group of verbs that is no wing's."""


class Verbs(click.Group):
    """Verbs that are imported when they are used: none waits for another's imports.

    Wings provide theirs to the extension point ``verbs``: a command, or a group, by its name.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return sorted((*VERBS, *(verb.name for verb in provided("verbs"))))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of that name, if there is one."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            module = import_module(f"firstflight.cli.{VERBS[cmd_name]}")
            name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
            self.add_command(getattr(module, name))
        elif cmd_name not in self.commands:
            for verb in provided("verbs"):
                if verb.name == cmd_name:
                    self.add_command(verb.load(), cmd_name)
        return super().get_command(ctx, cmd_name)


def main(arguments: Sequence[str], services: Services) -> int:
    """Do what ``arguments`` say and return the process's exit code; none rebuild Table 1."""
    code = run_command(testbed, args=list(arguments) or ["run"], prog_name="./run.sh", obj=services)
    if list(arguments[:2]) == ["kernel", "bisect-step"]:
        return tell_git_bisect(code)
    return code


@click.group(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(places.describe_version(), message="%(version)s")
def testbed() -> None:
    """Reproducible page loads: real TCP, real browsers, virtual time.

    Without a verb: `run configs/paper-table1.toml`, Table 1 of the TCP Fast Open paper.
    """
