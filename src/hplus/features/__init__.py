"""Finite approximations of a kernel: feature maps φ with φ(x)·φ(z) ≈ k(x, z).

`Nystroem`, `Pivots` and `RandomFourier` are ways to build one: called with a kernel and data, they
return a feature map.
"""

from hplus._values import Value
from hplus.features.base import FeatureMap
from hplus.features.fourier import FourierMap, RandomFourier, draw_frequencies
from hplus.features.landmarks import Nystroem, NystroemMap, Pivots, pivoted_cholesky

FEATURES: tuple[type[Value], ...] = (Nystroem, Pivots, RandomFourier, NystroemMap, FourierMap)
"""Every feature map and every way to build one."""

__all__ = [
    "FEATURES",
    "FeatureMap",
    "FourierMap",
    "Nystroem",
    "NystroemMap",
    "Pivots",
    "RandomFourier",
    "draw_frequencies",
    "pivoted_cholesky",
]
