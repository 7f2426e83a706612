"""Description of scenarios: what those ask who plan, run, judge and keep them."""

from __future__ import annotations

from testbed.kinds.kind import Kind
from testbed.model import CAPTURE_FILE
from wings.scenarios.measurement import ScenarioResult
from wings.scenarios.spec import Scenario


def _no_draw() -> str:
    return "a scenario does not depend on its seed: ask for one repetition"


KIND = Kind(
    name="scenario",
    package=__package__,
    spec=Scenario,
    measured=ScenarioResult,
    kept_as="scenario",
    kept_words="How a scenario came out, and what happened; null of others.",
    trial="a promise of the protocol that is performed",
    no_draw=_no_draw,
    needed=("scenario",),
    files=(CAPTURE_FILE,),
    file_words={
        "HOST.pcap": "Of a scenario: every packet that a host sent and was delivered (pcap); those "
        "of `attacker` are forged.",
    },
    library="scenarios",
    has_rules=True,
    short=True,
)
