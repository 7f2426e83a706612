"""The history of runs: which numbers each night had, kept in SQLite, shown as a page of trends."""
