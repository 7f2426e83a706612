"""Emulation of the access link: ``netem`` in the kernel, or ``tap``, a program beside it."""
