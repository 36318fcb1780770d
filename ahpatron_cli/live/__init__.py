"""Live streams: a learner that answers rows as they arrive, for as long as they do."""
