"""The command line: each command is a function of its settings, which checks, works and shows."""
