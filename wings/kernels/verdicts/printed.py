"""Verdicts on kernels, as verbs print and write them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from analysis.formats.forms import FORMS, FORMS_HELP
from firstflight.cli.reports import read_width
from testbed.base.whole_file import write_whole
from wings.kernels.verdicts.document import describe_attribution
from wings.kernels.verdicts.suite import render_junit, suites_of
from wings.kernels.verdicts.table import Attribution, FailRule
from wings.kernels.verdicts.terminal import render_commit, render_markdown, render_text

STYLES = ("table", "mail", "commit", *FORMS)
"""How the table of kernels may be printed."""
STYLES_HELP = f"Print a table, text for a mail or a commit message, {FORMS_HELP}."


def show_verdicts(attribution: Attribution, rule: FailRule, style: str, as_json: bool,
                  junit: Path | None, markdown: Path | None) -> None:  # fmt: skip
    """Print the verdicts on cells, in one of STYLES or as JSON, and write the named files.

    Raises:
        StorageError: a file cannot be written; nothing is printed.
    """
    for path, text in ((junit, render_junit(attribution, rule)),
                       (markdown, render_markdown(attribution, rule))):  # fmt: skip
        if path is not None:
            write_whole(path, text, "make its folder, or choose another place")
    click.echo(_render(attribution, rule, style, as_json).rstrip("\n"))


def _render(attribution: Attribution, rule: FailRule, style: str, as_json: bool) -> str:
    if as_json:
        return json.dumps(describe_attribution(attribution, rule), indent=2)
    if style == "commit":
        return render_commit(attribution)
    if style == "mail":
        return render_markdown(attribution, rule)
    if style in FORMS:
        return FORMS[style].write(suites_of(attribution, rule))
    return render_text(attribution, rule, read_width())
