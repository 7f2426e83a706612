"""Published tables and figures, rebuilt from the records of their experiments."""
