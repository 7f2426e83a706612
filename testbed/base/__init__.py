"""Foundations of every room: errors, processes, namespaces, places, units."""
