"""The machine set up for trials: bundle of guest code, programs, doctor, clean."""
