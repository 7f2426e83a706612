"""Recorded exchanges of one page load: in memory, without secrets, as a HAR file."""
