"""Statistics: estimates with intervals, shifts between arms, tests of significance."""
