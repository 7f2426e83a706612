"""Command line: one module for each verb, which ``main`` joins."""
