"""Commands: a program of the user runs alone in the lab of a page load."""
