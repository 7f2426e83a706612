"""The verb ``pages`` and what is below it."""
