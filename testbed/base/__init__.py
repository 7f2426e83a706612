"""Foundations of all rooms: errors, processes, namespaces, folders, units."""
