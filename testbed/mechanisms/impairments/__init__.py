"""Impairments of the link: loss, damage, copies, reordering (tc-netem(8))."""
