"""Types of the testbed: what was asked, what was measured, what was proven (no I/O here).

Standard library only, so that the same types exist inside a guest and on the host.
Units are in the names; a missing value is ``None``; raw values are never rounded.
"""

from __future__ import annotations

from testbed.model.asked import (
    FIFO,
    Condition,
    Cookies,
    Dns,
    Jitter,
    LinkSpec,
    Protocol,
    Randomness,
    TcpSpec,
    ThinkTime,
    TlsVersion,
)
from testbed.model.canonical import (
    canonical,
    digest,
)
from testbed.model.measured import (
    RESOLUTION_MS,
    Cost,
    LabReading,
    Measurement,
    PageLoad,
    Proof,
    Replay,
    RequestTiming,
    ServedConnection,
    Substitution,
    Waits,
)
from testbed.model.planned import (
    DEFAULT_KIND,
    DEFAULT_ROOT,
    FIRST_LOOK,
    MAX_REPETITIONS,
    Experiment,
    Linked,
    Spec,
    Trial,
    in_real_time,
    kind_of,
    stored_kind,
)
from testbed.model.record import (
    CAPTURE_FILE,
    HAR_FILE,
    HISTOGRAMS_FILE,
    OBSERVATION_FILE,
    SCHEMA_VERSION,
    SERVER_LOG_FILE,
    TRIAL_FILE,
    Outcome,
    Record,
)

__all__ = [
    "CAPTURE_FILE",
    "DEFAULT_KIND",
    "DEFAULT_ROOT",
    "FIFO",
    "FIRST_LOOK",
    "HAR_FILE",
    "HISTOGRAMS_FILE",
    "MAX_REPETITIONS",
    "OBSERVATION_FILE",
    "RESOLUTION_MS",
    "SCHEMA_VERSION",
    "SERVER_LOG_FILE",
    "TRIAL_FILE",
    "Condition",
    "Cookies",
    "Cost",
    "Dns",
    "Experiment",
    "Jitter",
    "LabReading",
    "LinkSpec",
    "Linked",
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
    "Spec",
    "Substitution",
    "TcpSpec",
    "ThinkTime",
    "TlsVersion",
    "Trial",
    "Waits",
    "canonical",
    "digest",
    "in_real_time",
    "kind_of",
    "stored_kind",
]
