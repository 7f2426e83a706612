"""What a guest has of the wing: what performs scenarios, and nothing that judges or shows them."""

from __future__ import annotations

from testbed.base.places import ROOT
from testbed.base.sources import imported_sources
from testbed.base.wings import provided
from testbed.setup.bundle import PROGRAMS

PERFORMING = {"attacks", "calls", "description", "measurement", "middlebox", "network",
              "performance", "promise", "script", "spec", "tls", "words"}  # fmt: skip


def test_a_bundle_has_what_performs_scenarios_alone() -> None:
    files = [path.relative_to(ROOT) for path in imported_sources(*PROGRAMS)]
    wing = {path.stem for path in files if path.parts[:2] == ("wings", "scenarios")}
    assert wing == PERFORMING | {"__init__"}
    packages = {path.parts[1] for path in files if path.parts[0] == "wings"}
    assert packages == {"__init__.py", *(each.wing for each in provided("kinds"))}
