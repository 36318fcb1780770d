"""The command line: each command parses options, runs the work and passes records to output."""
