"""Results held against earlier ones: compare, cross-check, baselines, history."""
