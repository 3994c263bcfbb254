"""What the rate of a stream on a grid answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, final

import numpy as np

from hplus._checks import Floats, check_count, check_positive, check_random_state
from hplus.positivity.exp import GridFunction
from hplus.rates.by_region import as_regions, one_or_all
from hplus.windows import Window


@final
class GridAnswers:
    """A rate on a window, without its uncertainty; asked like an estimator."""

    def __init__(self, window: Window, density: GridFunction, total: float) -> None:
        self.window, self.rate_, self._density = window, density * total, density

    def predict(self, X: Any) -> Floats:
        return self.rate_(self.window.require("X", X))

    def expected_count(self, regions: Window | Sequence[Window], *, exposure: float = 1.0) -> Any:
        E = check_positive("exposure", exposure)
        return one_or_all(regions, E * self.rate_.integrals(as_regions(self.window, regions)))

    def score(self, X: Any) -> float:
        return float(np.mean(np.log(self._density(self.window.require("X", X)))))

    def sample(self, n_paths: int = 1, random_state: Any = None) -> list[Floats]:
        rng = check_random_state(random_state)
        counts = rng.poisson(self.rate_.integral(), size=check_count("n_paths", n_paths))
        return [self.rate_.sample(int(n), rng) for n in counts]

    def peak(self) -> tuple[Floats, float]:
        return self.rate_.peak()

    def predict_interval(self, X: object, level: float = 0.9) -> NoReturn:
        raise _without_bands("predict_interval")

    def count_interval(
        self, regions: Window | Sequence[Window], level: float = 0.9, *, exposure: float = 1.0
    ) -> NoReturn:
        raise _without_bands("count_interval")


def _without_bands(what: str) -> AttributeError:
    return AttributeError(
        f'{what} needs method="tree": other methods do not tell how sure they are.'
    )
