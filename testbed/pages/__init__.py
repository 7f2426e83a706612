"""Pages: the catalogue of them, and the archives that are built for a run."""
