"""The LIBSVM text format: its grammar and its readers."""
