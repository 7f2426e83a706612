"""Packet captures: one reader, one differ, and the proof that the mechanism under test happened."""
