"""Tests of what cells came to on several kernels."""
