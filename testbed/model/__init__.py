"""Types of the testbed: what was asked, what was measured, what was proven (no I/O here).

Standard library only, so that the same types exist inside a guest and on the host.
Units are in the names; a missing value is ``None``; raw values are never rounded.
"""

from __future__ import annotations

from testbed.model.asked import (
    FIRST_LOOK,
    MAX_REPETITIONS,
    Condition,
    Cookies,
    Dns,
    Experiment,
    LinkSpec,
    Protocol,
    Randomness,
    TcpSpec,
    ThinkTime,
    TlsVersion,
    Trial,
    in_real_time,
)
from testbed.model.canonical import (
    canonical,
    digest,
)
from testbed.model.measured import (
    Cost,
    LabReading,
    Measurement,
    PageLoad,
    Proof,
    Replay,
    RequestTiming,
    ServedConnection,
    Substitution,
)
from testbed.model.record import (
    CAPTURE_FILE,
    HAR_FILE,
    OBSERVATION_FILE,
    SCHEMA_VERSION,
    TRIAL_FILE,
    Outcome,
    Record,
)

__all__ = [
    "CAPTURE_FILE",
    "FIRST_LOOK",
    "HAR_FILE",
    "MAX_REPETITIONS",
    "OBSERVATION_FILE",
    "SCHEMA_VERSION",
    "TRIAL_FILE",
    "Condition",
    "Cookies",
    "Cost",
    "Dns",
    "Experiment",
    "LabReading",
    "LinkSpec",
    "Measurement",
    "Outcome",
    "PageLoad",
    "Proof",
    "Protocol",
    "Randomness",
    "Record",
    "Replay",
    "RequestTiming",
    "ServedConnection",
    "Substitution",
    "TcpSpec",
    "ThinkTime",
    "TlsVersion",
    "Trial",
    "canonical",
    "digest",
    "in_real_time",
]
