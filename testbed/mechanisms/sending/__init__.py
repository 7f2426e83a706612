"""Sending by servers: as soon as there is something to send, and room to send it in."""
