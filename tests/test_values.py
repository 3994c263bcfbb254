"""Frozen values: compared by content, printed as code, changed by making another one."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import clone

from hplus._checks import check_positive, frozen_array
from hplus._values import Value, value


@value
class Dial(Value):
    size: float
    name: str = "plain"
    label: str | None = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self):
        self._set(size=check_positive("size", self.size))


@value
class Panel(Value):
    dial: Dial
    table: np.ndarray
    spare: tuple = ()

    def __post_init__(self):
        self._set(table=frozen_array("table", self.table))


@value
class Knob(Value):
    size: float


PANEL = Panel(Dial(2, label="a"), [[1.0, 2.0]], spare=(Dial(1), 3))


def test_values_with_the_same_content_are_equal_and_hash_alike():
    again = Panel(Dial(2.0, label="a"), np.array([[1, 2]]), spare=(Dial(1.0), 3))
    assert again == PANEL
    assert hash(again) == hash(PANEL)
    assert len({again, PANEL}) == 1


@pytest.mark.parametrize(
    "other",
    [
        Panel(Dial(3, label="a"), [[1.0, 2.0]], spare=(Dial(1), 3)),
        Panel(Dial(2, label="a"), [[1.0], [2.0]], spare=(Dial(1), 3)),
        Panel(Dial(2, label="a"), [[1.0, 2.0]], spare=(Dial(2), 3)),
        Dial(2),
        None,
    ],
)
def test_a_difference_anywhere_makes_values_unequal(other):
    assert other != PANEL


def test_values_of_two_classes_with_the_same_fields_are_unequal():
    assert Knob(1.0) != Dial(1.0)


def test_the_text_leaves_defaults_out_and_evaluates_back():
    assert repr(Dial(2)) == "Dial(2.0)"
    assert repr(Dial(2, "b", label="c")) == "Dial(2.0, name='b', label='c')"
    assert eval(repr(PANEL)) == PANEL


def test_a_value_cannot_be_changed_and_neither_can_its_arrays():
    table = np.ones((1, 2))
    panel = Panel(Dial(1), table)
    with pytest.raises(dataclasses.FrozenInstanceError):
        panel.dial = Dial(3)
    with pytest.raises(ValueError, match="read-only"):
        panel.table[0, 0] = 5.0
    table[0, 0] = 5.0
    assert panel.table[0, 0] == 1.0


def test_parameters_reach_into_the_values_inside():
    assert set(PANEL.get_params(deep=False)) == {"dial", "table", "spare"}
    deep = PANEL.get_params()
    assert (deep["dial__size"], deep["dial__label"]) == (2.0, "a")
    assert PANEL.replace(**deep) == PANEL


def test_replace_gives_a_checked_copy_and_takes_the_whole_before_its_parts():
    assert PANEL.replace(dial__size=5).dial == Dial(5.0, label="a")
    assert PANEL.dial.size == 2.0
    assert PANEL.replace(dial__name="z", dial=Dial(9)).dial == Dial(9.0, "z")
    with pytest.raises(ValueError, match=r"size must be a positive finite number, got -1\."):
        PANEL.replace(dial__size=-1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sise": 1}, r"Panel has no parameter 'sise': use one of \['dial', 'table', 'spare'\]\."),
        (
            {"dial__sise": 1},
            r"Dial has no parameter 'sise': use one of \['size', 'name', 'label'\]\.",
        ),
        ({"spare__size": 1}, r"spare has no parameters of its own, got 'spare__size'\."),
    ],
)
def test_a_misspelt_parameter_is_refused_with_a_list_of_valid_names(params, message):
    with pytest.raises(ValueError, match=message):
        PANEL.replace(**params)


def test_scikit_learn_clones_a_value_to_itself():
    assert clone(PANEL) is PANEL


@value
class Range(Value):
    low: float
    high: float

    def __post_init__(self):
        assert self.low < self.high


def test_several_parameters_of_one_part_change_together_in_any_order():
    panel = Panel(Range(0.0, 1.0), [[1.0]])
    for changes in ({"dial__low": 5.0, "dial__high": 9.0}, {"dial__high": 9.0, "dial__low": 5.0}):
        assert panel.replace(**changes).dial == Range(5.0, 9.0)
