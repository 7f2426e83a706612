"""The numbers to reach: each asked number beside the measured one (docs/bench.md)."""
