"""Theorems, their bounds, and certificates from them."""
