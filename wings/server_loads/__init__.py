"""Server loads: connections arrive at a server faster than it may be able to take them."""

PROVIDES = {
    "kinds": {"server_load": "wings.server_loads.description"},
    "verbs": {"saturation": "wings.server_loads.verbs:saturation"},
}
