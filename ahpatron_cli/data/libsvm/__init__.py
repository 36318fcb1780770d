"""The LIBSVM text format: its grammar, and readers of it."""
