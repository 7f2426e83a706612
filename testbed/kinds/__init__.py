"""Kinds of trial: what performs each, where its kernel runs, and what judges it on the host."""
