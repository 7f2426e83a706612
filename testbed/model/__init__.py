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
from testbed.model.command import (
    Executed,
    LabCommand,
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
from testbed.model.planned import (
    FIRST_LOOK,
    KINDS,
    MAX_REPETITIONS,
    Experiment,
    Kind,
    Linked,
    Spec,
    Trial,
    in_real_time,
    kind_of,
    spec_type,
)
from testbed.model.record import (
    CAPTURE_FILE,
    HAR_FILE,
    HISTOGRAMS_FILE,
    OBSERVATION_FILE,
    SCHEMA_VERSION,
    TRIAL_FILE,
    Measured,
    Outcome,
    Record,
)
from testbed.model.scenario import (
    Arrival,
    Call,
    Passage,
    Performance,
    Scenario,
    ScenarioResult,
    Verdict,
)
from testbed.model.served import (
    ArrivalSpec,
    ServedLoad,
    ServerLoad,
    ServerSpec,
)

__all__ = [
    "CAPTURE_FILE",
    "FIFO",
    "FIRST_LOOK",
    "HAR_FILE",
    "HISTOGRAMS_FILE",
    "KINDS",
    "MAX_REPETITIONS",
    "OBSERVATION_FILE",
    "SCHEMA_VERSION",
    "TRIAL_FILE",
    "Arrival",
    "ArrivalSpec",
    "Call",
    "Condition",
    "Cookies",
    "Cost",
    "Dns",
    "Executed",
    "Experiment",
    "Kind",
    "LabCommand",
    "LabReading",
    "LinkSpec",
    "Linked",
    "Measured",
    "Measurement",
    "Outcome",
    "PageLoad",
    "Passage",
    "Performance",
    "Proof",
    "Protocol",
    "Randomness",
    "Record",
    "Replay",
    "RequestTiming",
    "Scenario",
    "ScenarioResult",
    "ServedConnection",
    "ServedLoad",
    "ServerLoad",
    "ServerSpec",
    "Spec",
    "Substitution",
    "TcpSpec",
    "ThinkTime",
    "TlsVersion",
    "Trial",
    "Verdict",
    "canonical",
    "digest",
    "in_real_time",
    "kind_of",
    "spec_type",
]
