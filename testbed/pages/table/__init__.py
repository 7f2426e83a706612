"""Resource tables: one row for each exchange of a page, no contents."""
