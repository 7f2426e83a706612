"""What is particular to each kind of trial when results are read."""
