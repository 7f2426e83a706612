from testbed.base.places import ROOT

SCENARIOS = ROOT / "scenarios"
