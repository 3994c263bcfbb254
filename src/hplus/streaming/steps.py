"""Step sizes of a stream, and how they depend on the number of events seen."""

from __future__ import annotations

from typing import Any, final

from hplus._checks import check_choice, check_positive, shown
from hplus._values import Value, value


@final
@value
class FixedStep(Value):
    """Steps of a constant size: the stream follows changes and never settles."""

    size: float = 0.1

    def __post_init__(self) -> None:
        self._set(size=check_positive("size", self.size))


@final
@value
class RootStep(Value):
    """A step of size/√n at the n-th event."""

    size: float = 1.0

    def __post_init__(self) -> None:
        self._set(size=check_positive("size", self.size))


@final
@value
class InverseStep(Value):
    """A step of size/n at the n-th event; without a size, 1/(decay·n) for a decay above 0."""

    size: float | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            self._set(size=check_positive("size", self.size))


Step = FixedStep | RootStep | InverseStep

STEPS: dict[str, type[Step]] = {"fixed": FixedStep, "root": RootStep, "inverse": InverseStep}
"""Every step by name."""


def as_step(step: Any) -> Step:
    """A step from its name, a step, or a number, which is a fixed size."""
    if isinstance(step, Step):
        return step
    if isinstance(step, str):
        return STEPS[check_choice("step", step, STEPS)]()
    if isinstance(step, (Value, type)) or step is None:
        raise TypeError(
            f"step must be a number, one of {', '.join(map(repr, STEPS))} or a step such as "
            f"RootStep(0.5), got {shown(step)}."
        )
    return FixedStep(check_positive("step", step))
