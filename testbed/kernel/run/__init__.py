"""Kernels that run trials: virtual and host, in a jail or an enclosure."""
