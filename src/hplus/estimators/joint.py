"""What regressors that learn several functions jointly share: one kernel, targets of unit size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus._checks import Floats, check_positive, shown
from hplus.estimators.base import Estimator, as_landmarks, kernel_or
from hplus.features import Nystroem
from hplus.kernels import Constant, Kernel
from hplus.positivity import Cone, Full, as_cone
from hplus.solvers.sos.blocks import FunctionBlock, Plain, Squares
from hplus.solvers.sos.learning import Learned, feature_map, learn
from hplus.solvers.sos.problem import Problem
from hplus.solvers.sos.rowwise import RowLoss
from hplus.tuning.scales import learned_cone, leave_one_out_scale

RIDGE_PENALTY = 5e-4
"""The penalty of the kernel ridge regression with which scales are learned."""


class JointRegressor(Estimator):
    """Several functions of one kernel, each of any sign or a sum of squares."""

    kernel: Kernel | str
    penalty: float | None
    cone: Cone | str
    landmarks: int | Nystroem | None

    def _full_cone(self) -> Full | None:
        """The cone, or None if its penalties are to be learned."""
        cone = as_cone(self.cone)
        if not (cone is None or isinstance(cone, Full)):
            raise ValueError(
                f"cone must be 'auto', 'full' or Full(trace, frobenius) here, got {shown(cone)}."
            )
        return cone

    def _standardised(self, y: Floats, shares: Floats, center: float) -> Floats:
        """y with the center subtracted and scaled to unit size; both are recorded."""
        self.center_, self.spread_ = center, root_mean_square(y - center, y, shares)
        return (y - self.center_) / self.spread_

    def _learn(
        self, X: Floats, rows: RowLoss, y: Floats, shares: Floats, squares: Sequence[bool],
        mixing: Floats,
    ) -> Learned:  # fmt: skip
        """A function for each entry of `squares`: a sum of squares, or one of any sign."""
        plain = None if self.penalty is None else check_positive("penalty", self.penalty)
        self.kernel_ = kernel_or(
            self.kernel, lambda: leave_one_out_scale(X, y, shares, RIDGE_PENALTY) + Constant(1.0)
        )

        def problem(rows: RowLoss, shares: Floats, Phi: Floats, cone: Full) -> Problem:
            blocks: list[FunctionBlock] = [
                Squares(Phi, cone.trace, cone.frobenius)
                if positive
                else Plain(Phi, cone.frobenius if plain is None else plain)
                for positive in squares
            ]
            return Problem(rows, shares, tuple(blocks), mixing)

        self.cone_ = self._full_cone() or learned_cone(self.kernel_, X, rows, shares, problem)
        features = feature_map(self.kernel_, X, as_landmarks(self.landmarks))
        return learn(problem(rows, shares, features(X), self.cone_), features, X)


def root_mean_square(part: Floats, y: Floats, shares: Floats) -> float:
    """The root mean square of `part`; of y itself, or 1, if the part is nothing but rounding."""
    for numbers, least in ((part, 1e-12 * float(np.abs(y).max())), (y, 0.0)):
        size = float(np.sqrt(shares @ numbers**2))
        if size > least:
            return size
    return 1.0
