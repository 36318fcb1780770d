"""Sweeps over many trials: configuration, plan, execution, results file and summary."""
