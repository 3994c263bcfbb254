"""Solvers: plain functions on arrays."""
