"""Verdicts on loads on a server."""

from __future__ import annotations

from analysis.verdicts.compare.kind import VerdictKind

DESCRIPTION = VerdictKind()
