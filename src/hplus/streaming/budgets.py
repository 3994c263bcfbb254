"""Budgets: how many atoms a stream keeps, and which."""

from __future__ import annotations

from typing import Any, final

from hplus._checks import check_count, check_flag, check_nonnegative
from hplus._values import Value, as_value, value
from hplus.features import Nystroem, RandomFourier


@final
@value
class Unlimited(Value):
    """Keep an atom for every event: exact, but memory grows with the stream."""


@value
class Sized(Value):
    """A budget of `size` atoms."""

    size: int = 100

    def __post_init__(self) -> None:
        self._set(size=check_count("size", self.size))


@final
@value
class Oldest(Sized):
    """Keep `size` atoms and remove the oldest first."""


@final
@value
class Smallest(Sized):
    """Keep `size` atoms and remove the one with the smallest weight first."""


@final
@value
class Forgetron(Sized):
    """Keep `size` atoms; before the oldest is removed, all weights shrink so that little is lost.

    Requires steps of a fixed size and k(x, x) <= 1.
    """


@final
@value
class KOMP(Value):
    """Kernel orthogonal matching pursuit: after every step, remove atoms that are hardly needed.

    Atoms are removed, the cheapest first, as long as the function stays within `tolerance` of what
    it was, in the norm of the kernel's space. A removed atom is projected on the remaining ones.

    Parameters
    ----------
    tolerance : float
        The largest distance by which one compression may move the function.
    size : int, optional
        The largest number of atoms, whatever the tolerance; removals beyond the tolerance are
        counted in `status_`. None means 4,096.
    relative : bool
        Whether the tolerance is relative to the length of the step just taken.
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
    """Random Fourier features that are regenerated from their seed whenever they are needed.

    Only weights are stored, no frequencies, and each step updates the weights of one block in
    turn. Requires a Gaussian kernel.
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


NamedBudget = Unlimited | Oldest | Smallest | Forgetron | KOMP | DoublyStochastic
Budget = NamedBudget | Nystroem | RandomFourier

BUDGETS: dict[str, type[NamedBudget]] = {
    "unlimited": Unlimited,
    "oldest": Oldest,
    "smallest": Smallest,
    "forgetron": Forgetron,
    "komp": KOMP,
    "doubly_stochastic": DoublyStochastic,
}
"""The budgets of this module by name; `Nystroem` and `RandomFourier` are budgets too."""

AUTO = KOMP(0.1, 1000, relative=True)
"""The budget that "auto" stands for, except for `Refit`."""

AUTO_REFIT = KOMP(0.03, 1000, relative=True)
"""The budget that "auto" stands for with `Refit`, which only its dictionary limits."""


def as_budget(budget: Any, auto: Budget = AUTO) -> Budget:
    """A budget from its name or a budget; "auto" gives `auto` and None `Unlimited`."""
    if budget is None:
        return Unlimited()
    if isinstance(budget, str) and budget == "auto":
        return auto
    if isinstance(budget, Nystroem | RandomFourier):
        return budget
    return as_value("budget", budget, BUDGETS, "KOMP(1e-3), Oldest(100) or RandomFourier(200)")
