"""Scenarios: promises of the protocol, performed call by call and judged packet by packet."""

PROVIDES = {
    "documents": {"scenarios": "wings.scenarios.documents:CommittedScenarios"},
    "endings": {"scenarios": "wings.scenarios.documents:say_promises"},
    # Bare, so that a guest, whose bundle has what registries name so, finds it.
    "kinds": {"scenario": "wings.scenarios.description"},
    "verbs": {"scenario": "wings.scenarios.verbs:scenario"},
}
