"""Three cones of sums of squares, each containing the next, with their penalties.

With equal penalties, Full(0, 2γ), Diagonal(γ) and Paper(γ) minimise the same objective over ever
smaller cones [math, Eq. 3.3].
"""

from __future__ import annotations

from typing import final

from hplus._checks import check_choice, check_nonnegative, check_positive, shown
from hplus._values import Value, value


@value
class Cone(Value):
    """A cone of sums of squares with a penalty."""


@final
@value
class Full(Cone):
    """f(x) = φ(x)ᵀAφ(x), A ⪰ 0: every sum of squares [marteau2020].

    The penalty is trace·tr A + (frobenius/2)‖A‖²; the trace keeps the number of squares low.
    """

    trace: float = 1e-3
    frobenius: float = 1e-3

    def __post_init__(self) -> None:
        self._set(
            trace=check_nonnegative("trace", self.trace),
            frobenius=check_positive("frobenius", self.frobenius),
        )


@value
class AtPoints(Cone):
    """f(x) = Σ_l α_l k(x_l, x)² at the data points x_l, with penalty·‖f‖² in the space of k²."""

    penalty: float = 1e-3

    def __post_init__(self) -> None:
        self._set(penalty=check_positive("penalty", self.penalty))


@final
@value
class Diagonal(AtPoints):
    """f(x) = Σ_l α_l k(x_l, x)², α >= 0: squares of single kernels at the data points.

    The penalty is penalty·‖f‖² in the space of k².
    """


@final
@value
class Paper(AtPoints):
    """f(x) = Σ_l α_l k(x_l, x)² with G diag(α) + diag(α) G ⪰ 0, G = k(X, X) [bagnell2015].

    Smaller than `Diagonal` and much slower; needs cvxpy, the squared loss and all points. The
    penalty is penalty·‖f‖² in the space of k².
    """


CONES: dict[str, type[Cone]] = {"full": Full, "diagonal": Diagonal, "paper": Paper}
"""Every cone by its name."""


def as_cone(cone: object) -> Cone | None:
    """A cone, also from its name; None for "auto", which means that it is learned."""
    if isinstance(cone, Cone):
        return cone
    if isinstance(cone, str):
        name = check_choice("cone", cone, ("auto", *CONES))
        return None if name == "auto" else CONES[name]()
    names = ", ".join(map(repr, ("auto", *CONES)))
    raise TypeError(
        f"cone must be one of {names} or a cone such as Full(1e-3, 1e-3), got {shown(cone)}."
    )
