"""Kernels: frozen values with an algebra."""

from hplus.kernels.base import Kernel, Product, Scaled, Sum, is_psd
from hplus.kernels.callables import Custom, Scalar
from hplus.kernels.stationary import (
    Gaussian,
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
from hplus.kernels.structured import Constant, Finite, Linear, Nugget, Polynomial

KERNELS: tuple[type[Kernel], ...] = (
    Sum,
    Product,
    Scaled,
    Gaussian,
    Laplace,
    Matern32,
    Matern52,
    RationalQuadratic,
    Periodic,
    Constant,
    Linear,
    Polynomial,
    Nugget,
    Finite,
    Scalar,
    Custom,
)
"""Every kernel class."""

__all__ = [
    "KERNELS", "Constant", "Custom", "Finite", "Gaussian", "Kernel", "Laplace", "Linear",
    "Matern32", "Matern52", "Nugget", "Periodic", "Polynomial", "Product", "RationalQuadratic",
    "Scalar", "Scaled", "Sum", "is_psd",
]  # fmt: skip
