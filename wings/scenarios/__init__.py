"""Scenarios: promises of the protocol, performed call by call and judged packet by packet."""

PLACE = ("scenarios", ".toml")
"""The folder of scenarios' files, and how their names end."""
PROVIDES = {
    "argument_places": {"scenario": "wings.scenarios:PLACE"},
    "documents": {"scenarios": "wings.scenarios.documents:CommittedScenarios"},
    "endings": {"scenarios": "wings.scenarios.documents:say_promises"},
    # Bare, so that a guest, whose bundle has what registries name so, finds it.
    "kinds": {"scenario": "wings.scenarios.description"},
    "verbs": {"scenario": "wings.scenarios.verbs:scenario"},
}
