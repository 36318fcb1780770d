"""Update rules: one class per learner. `core/registry.py` finds them by name."""
