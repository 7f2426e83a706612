"""The way of a run: plan, prepare, launch, run, perform where the kernel runs, judge."""
