"""Device: what a page is asked for as, and what it finds itself on."""
