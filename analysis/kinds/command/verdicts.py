"""Verdicts on commands in the lab."""

from __future__ import annotations

from analysis.verdicts.kind import VerdictKind

DESCRIPTION = VerdictKind()
