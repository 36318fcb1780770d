"""Models and checkpoints: a learner in the middle of its stream, on disk."""
