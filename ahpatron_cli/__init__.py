"""Budgeted online kernel learning over LIBSVM files: learners, engine and command line."""

__version__ = "0.1.0"
