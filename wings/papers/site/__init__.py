"""Web site of results on several kernels: matrix, steps, and a page for each load and promise."""
