"""The learner behind HTTP."""
