"""The machine set up for trials: bundle of guest code, programs, packs of roots, doctor, clean."""
