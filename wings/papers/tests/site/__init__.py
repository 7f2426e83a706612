"""Tests of the web site of results on several kernels."""
