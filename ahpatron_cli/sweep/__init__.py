"""Many trials, kept safe: grids, execution, and the results file."""
