"""Page loads: a client loads a page from its server, and the capture proves how."""
