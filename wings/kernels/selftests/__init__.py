"""Kernel selftests: tests of a kernel's own source, run by that kernel in guests."""
