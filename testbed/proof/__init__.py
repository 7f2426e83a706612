"""Proof of a trial: its evidence, read once, and checks that hold for whatever runs in the lab."""
