"""The program as a whole: its command line joins testbed and analysis."""
