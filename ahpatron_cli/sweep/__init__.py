"""Sweeps over many trials: grids, execution, results file and summary."""
