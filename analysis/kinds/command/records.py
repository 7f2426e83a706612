"""Metrics and columns of commands in the lab."""

from __future__ import annotations

from dataclasses import asdict

from analysis.records.kind import RecordKind, defaults_of, leaves_of
from analysis.records.metric import Metric
from testbed.kinds.command.spec import LabCommand
from testbed.model import RESOLUTION_MS

METRICS = (
    Metric("duration_ms", "duration", "duration", RESOLUTION_MS),
    Metric("exit_status", "exit status", "status", 0.0, places=0, labels="exit statuses",
           better="smaller"),
)  # fmt: skip
DESCRIPTION = RecordKind(
    metrics=METRICS, holds="end of its command",
    knobs=tuple(leaves_of(asdict(LabCommand(page="", client="")))), axes=("command", "rtt_ms"),
    unless_default=defaults_of(LabCommand, "protocol", "tls_version", "randomness", "allow_misses",
                               "server_think_ms"),
)  # fmt: skip
