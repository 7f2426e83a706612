"""Scenario: a promise of the protocol, performed call by call and judged packet by packet."""
