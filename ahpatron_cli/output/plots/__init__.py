"""Pictures: curves and sweeps, drawn with matplotlib."""
