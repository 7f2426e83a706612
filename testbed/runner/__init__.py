"""Runner of an experiment: plan, prepare, launch, run, perform where the kernel runs, judge."""
