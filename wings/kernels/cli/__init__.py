"""Verbs of kernels: the group ``kernel``, and what ``compare`` says of several kernels."""
