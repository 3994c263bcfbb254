"""hplus: learn functions that cannot be negative."""

__version__ = "0.1.0"
