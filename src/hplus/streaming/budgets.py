"""Budgets: how many atoms a stream keeps, and which."""

from __future__ import annotations

from typing import Any, final

from hplus._checks import check_choice, check_count, check_flag, check_nonnegative, shown
from hplus._values import Value, value
from hplus.features import Nystroem, RandomFourier

MOST_ATOMS = 4096
"""Atoms of a dictionary that is bounded by a tolerance alone, so that memory stays bounded."""


@final
@value
class Unlimited(Value):
    """Keep an atom for every event: exact, with memory that grows as the stream does."""


@value
class Sized(Value):
    """A budget of so many atoms."""

    size: int = 100

    def __post_init__(self) -> None:
        self._set(size=check_count("size", self.size))


@final
@value
class Oldest(Sized):
    """Keep the last `size` atoms."""


@final
@value
class Smallest(Sized):
    """Keep `size` atoms; past it the one with the smallest weight goes."""


@final
@value
class Forgetron(Sized):
    """Keep the last `size` atoms, shrinking all weights before one goes, so that little is lost.

    For steps of one fixed size; it needs k(x, x) <= 1.
    """


@final
@value
class KOMP(Value):
    """Kernel orthogonal matching pursuit: after every step, leave out what is hardly needed.

    Atoms go, the cheapest first, as long as the function stays within `tolerance` of what it was,
    in the norm of the kernel's space; what goes is projected on the rest.

    Parameters
    ----------
    tolerance : float
        The largest distance that one compression may cost.
    size : int, optional
        At most so many atoms, whatever the tolerance: what it costs more is counted in `status_`.
        None is 4,096.
    relative : bool
        Whether the tolerance is a share of the length of the step before, whatever its unit.
    """

    tolerance: float = 1e-3
    size: int | None = None
    relative: bool = False

    def __post_init__(self) -> None:
        tolerance = check_nonnegative("tolerance", self.tolerance)
        size = None if self.size is None else check_count("size", self.size)
        self._set(tolerance=tolerance, size=size, relative=check_flag("relative", self.relative))


@final
@value
class DoublyStochastic(Value):
    """Random Fourier features drawn again from their seed whenever they are needed.

    Memory holds weights, and no frequencies. A step changes those of one block, in turn. It is for
    Gaussian kernels.
    """

    frequencies: int = 256
    block: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        frequencies = check_count("frequencies", self.frequencies)
        block = check_count("block", self.block)
        if frequencies % block:
            raise ValueError(
                f"frequencies must be a multiple of block, got {frequencies} and {block}."
            )
        seed = check_count("seed", self.seed, least=0)
        if seed >= 2**62:
            raise ValueError(f"seed must be below 2**62, got {seed}.")
        self._set(frequencies=frequencies, block=block, seed=seed)


BUDGETS: dict[str, type[Value]] = {
    "unlimited": Unlimited,
    "oldest": Oldest,
    "smallest": Smallest,
    "forgetron": Forgetron,
    "komp": KOMP,
    "doubly_stochastic": DoublyStochastic,
}
"""Every budget of this module by its name; `Nystroem` and `RandomFourier` are budgets too."""


AUTO = KOMP(0.1, 1000, relative=True)
"""What budget="auto" is, unless something finer is needed."""


def as_budget(budget: Any, auto: Value = AUTO) -> Any:
    """A budget from "auto", from its name or from a budget; None is `Unlimited`."""
    if budget is None:
        return Unlimited()
    if isinstance(budget, str) and budget == "auto":
        return auto
    if isinstance(budget, str):
        return BUDGETS[check_choice("budget", budget, BUDGETS)]()
    if isinstance(budget, (*BUDGETS.values(), Nystroem, RandomFourier)):
        return budget
    raise TypeError(
        f"budget must be one of {', '.join(map(repr, BUDGETS))} or a budget such as KOMP(1e-3), "
        f"Oldest(100) or RandomFourier(200), got {shown(budget)}."
    )
