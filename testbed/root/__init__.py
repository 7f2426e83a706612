"""Root: the user land of guests, made of Debian packages that a lock names by SHA-256."""
