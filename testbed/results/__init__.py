"""Results folders: manifest, records, store, environment, live progress."""
