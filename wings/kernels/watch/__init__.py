"""Executor for the branches of a kernel's CI: what is tested of each, and what is published."""
