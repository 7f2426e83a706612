"""Commands: a program of the user's own runs in the lab of a page load, and nothing else does."""
