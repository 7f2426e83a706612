"""The results table, its rows and the summary."""
