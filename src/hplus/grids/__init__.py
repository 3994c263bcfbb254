"""Tensor grids: nodes at the corners of equal cells of a box, with a hat function at each."""

from hplus.grids.tensor import TensorGrid, integrals_near, integrals_within, restricted

__all__ = ["TensorGrid", "integrals_near", "integrals_within", "restricted"]
