"""Publications: the values that they state, and what must be said beside them."""
