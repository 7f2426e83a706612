"""Verdicts: results held against others, kernels against each other, runs against baselines."""
