"""What emulates the access link: ``netem`` in the kernel, ``tap`` beside it."""
