"""Results compared with earlier ones: compare, baselines, history."""
