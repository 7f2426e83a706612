"""Packs: results, and artifacts with all that made them, in one file for who hands them on."""

PROVIDES = {"verbs": {"pack": "wings.packs.verbs:pack", "unpack": "wings.packs.verbs:unpack"}}
