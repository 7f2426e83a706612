"""Two kernels side by side: virtual against real time, or two versions in virtual time."""
