"""Annotations of a file in GitHub's reviews: lines of a log that its runner takes for commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from analysis.formats.lines import plain
from analysis.formats.suites import Case
from analysis.words import clean

_LEVELS = {"failed": "error", "error": "error", "skipped": "notice"}
_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {ord(":"): "%3A", ord(","): "%2C"}


def write_annotations(cases: Iterable[Case], file: PurePath) -> str:
    """Return a line for each case that did not pass, at the top of ``file``."""
    return "".join(
        f"::{_LEVELS[case.state]} file={_property(str(file))},line=1,title={_property(case.name)}::"
        f"{_escape(case.says)}\n"
        for case in cases
        if case.state in _LEVELS
    )


def _escape(text: str) -> str:
    return plain(clean(text)).translate(_TEXT)


def _property(text: str) -> str:
    return _escape(text).translate(_PROPERTY)
