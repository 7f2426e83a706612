"""Promises of the protocol: what scenarios came to, as tables, documents and ladder diagrams."""
