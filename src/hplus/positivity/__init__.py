"""Functions that cannot be negative, by how they are made."""

from hplus.positivity.cones import CONES, Cone, Diagonal, Full, Paper, as_cone
from hplus.positivity.sos import SumOfSquares

__all__ = ["CONES", "Cone", "Diagonal", "Full", "Paper", "SumOfSquares", "as_cone"]
