"""Results table, its rows, and the summary."""
