"""History of runs: the numbers of every night, kept in SQLite, shown as a page of trends."""
