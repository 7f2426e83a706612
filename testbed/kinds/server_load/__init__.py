"""Server loads: connections arrive at a server faster than it may be able to take them."""
