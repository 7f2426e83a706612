"""Figures of a report: what was swept, the plans that draw it, and which of them are shown."""
