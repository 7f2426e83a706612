"""Pages: resource tables, bodies built from them, and the archives that server and clients read."""
