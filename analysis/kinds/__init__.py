"""Kinds of trial, as results are read: what is particular to each."""
