"""Report of commands in the lab."""

from __future__ import annotations

from analysis.report.kind import ReportKind

DESCRIPTION = ReportKind()
