"""Listings of verbs: tables that are whole for programs and fit into a person's terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from analysis.tables.columns import Column, align, render_columns


def print_columns(columns: Sequence[Column]) -> None:
    """Print a table: as wide as it is, or as wide as the terminal where it goes to one."""
    if sys.stdout.isatty():
        lines = render_columns(columns, shutil.get_terminal_size().columns)
    else:
        lines = align(columns)
    for line in lines:
        click.echo(line)
