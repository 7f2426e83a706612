"""A built page as everyone reads it: its exchanges, and the heads of its responses."""
