"""Kernel machines: the penalised mean loss, its solvers and its certificate."""
