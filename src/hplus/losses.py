"""Losses: value, slope, curvature and convex conjugate."""
