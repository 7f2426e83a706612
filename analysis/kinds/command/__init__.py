"""Commands in the lab of a page load: how long each took, and how it ended."""
