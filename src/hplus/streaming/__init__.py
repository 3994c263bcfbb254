"""Learning from a stream: one compiled engine, and the estimators that drive it."""
