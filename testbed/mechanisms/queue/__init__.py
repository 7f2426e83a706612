"""Queue before the line (tc(8))."""
