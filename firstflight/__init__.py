"""Program: the command line, which joins testbed and analysis."""
