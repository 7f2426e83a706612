"""Report of loads on a server."""

from __future__ import annotations

from analysis.kinds.server_load.lines import LINES
from analysis.report.kind import ReportKind

DESCRIPTION = ReportKind(figures=LINES)
