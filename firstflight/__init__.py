"""The program as a whole: the testbed's command line joined with the analysis."""
