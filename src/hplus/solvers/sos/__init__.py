"""Sums of squares: the convex problem, its dual, its solvers and its certificate."""
