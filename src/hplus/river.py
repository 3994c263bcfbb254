"""Streaming estimators as River models: examples are dicts, and new classes may appear.

The columns are the features of the first example, sorted by name. Features that appear later are
ignored, and missing ones are 0: put a StandardScaler() before the model, so that 0 is the mean.
Learning one example at a time or in batches gives the same model, bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.special import expit

from hplus._checks import Floats, shown
from hplus._values import Value, value
from hplus.streaming.classification import StreamingClassifier
from hplus.streaming.links import Identity, as_link
from hplus.streaming.regression import StreamingRegressor

if TYPE_CHECKING:
    from pandas import DataFrame, Series

try:
    from river import base
except ImportError:
    raise ImportError("hplus.river needs river: pip install 'hplus[river]'.") from None

Example = dict[Hashable, Any]
"""The features of an example by name."""

Label = bool | str | int

NUMBER_TYPES = (float, int, np.number, np.bool_)


@final
@value
class FeatureColumns(Value):
    """The features that form the columns of a row, sorted by name."""

    names: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("x must hold at least one feature in the first example, got none.")
        self._set(names=tuple(sorted(self.names, key=str)))

    def row(self, x: Mapping[Hashable, object]) -> Floats:
        """One example as a row, shape (1, d)."""
        numbers = [x.get(name, 0.0) for name in self.names]
        if not all(isinstance(number, NUMBER_TYPES) for number in numbers):
            self._raise_for_text(x)
        return np.array([numbers], dtype=np.float64)

    def rows(self, X: DataFrame) -> Floats:
        """A DataFrame as rows, shape (n, d)."""
        return X.reindex(columns=list(self.names), fill_value=0.0).to_numpy(dtype=np.float64)

    def _raise_for_text(self, x: Mapping[Hashable, object]) -> None:
        name = next(n for n in self.names if not isinstance(x.get(n, 0.0), NUMBER_TYPES))
        raise TypeError(
            f"x must hold numbers only, got {shown(x[name])} for {name!r}: encode it first, for "
            "example with OneHotEncoder()."
        )


def columns_of(x: Any) -> FeatureColumns:
    """The columns of the first example."""
    if not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of features, got {shown(x)}.")
    return FeatureColumns(tuple(x))


@final
class RiverRegressor(base.MiniBatchRegressor):
    """`StreamingRegressor` for River's streams of dicts; z = 0 before the first example.

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hplus.river import RiverRegressor
    >>> model = preprocessing.StandardScaler() | RiverRegressor()
    >>> model = preprocessing.TargetStandardScaler(model)
    >>> stream = datasets.TrumpApproval().take(500)
    >>> evaluate.progressive_val_score(stream, model, metrics.MAE()).get() < 0.7
    True

    Parameters
    ----------
    kernel, loss, link, step, decay, budget, average
        As in `StreamingRegressor`.
    """

    def __init__(
        self,
        kernel: Any = "auto",
        loss: Any = "squared",
        link: Any = "identity",
        step: Any = "auto",
        decay: float = 0.0,
        budget: Any = "auto",
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.link = link
        self.step = step
        self.decay = decay
        self.budget = budget
        self.average = average
        self._columns: FeatureColumns | None = None
        self._model = StreamingRegressor(**self._get_params())

    def learn_one(self, x: Example, y: float) -> None:
        """Learn from one example."""
        columns = self._columns or columns_of(x)
        self._model.learn_one(columns.row(x), y)
        self._columns = columns

    def predict_one(self, x: Example) -> float:
        """f(x)."""
        if self._columns is None:
            return self._first
        return float(self._model.predict(self._columns.row(x))[0])

    def learn_many(self, X: DataFrame, y: Series) -> None:
        """Learn from the rows of a DataFrame, one at a time."""
        columns = self._columns or FeatureColumns(tuple(X.columns))
        self._model.partial_fit(columns.rows(X), np.asarray(y))
        self._columns = columns

    def predict_many(self, X: DataFrame) -> Series:
        """f for every row, as a Series."""
        import pandas as pd

        if self._columns is None:
            return pd.Series(self._first, index=X.index)
        return pd.Series(self._model.predict(self._columns.rows(X)), index=X.index)

    @property
    def _first(self) -> float:
        """The prediction for z = 0."""
        return 0.0 if isinstance(as_link(self.link), Identity) else 1.0


@final
class RiverClassifier(base.MiniBatchClassifier):
    """`StreamingClassifier` for River's streams of dicts, with one classifier for each class seen.

    Each classifier learns its class against the rest. One more learns that every example belongs
    to another class; a new class starts from a copy of it, so that the result is the same as if
    all classes had been known beforehand.

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from hplus.river import RiverClassifier
    >>> model = preprocessing.StandardScaler() | RiverClassifier()
    >>> stream = datasets.Phishing().take(500)
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.8
    True

    Parameters
    ----------
    kernel, loss, step, decay, budget, average
        As in `StreamingClassifier`, except that the default loss is "logistic", the only one that
        gives probabilities.
    """

    def __init__(
        self,
        kernel: Any = "auto",
        loss: Any = "logistic",
        step: Any = "auto",
        decay: float = 0.0,
        budget: Any = "auto",
        average: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.step = step
        self.decay = decay
        self.budget = budget
        self.average = average
        self._columns: FeatureColumns | None = None
        self._none = StreamingClassifier(**self._get_params())
        self._classifiers: dict[Label, StreamingClassifier] = {}

    def learn_one(self, x: Example, y: Label) -> None:
        """Learn from one example, which may belong to a new class."""
        columns = self._columns or columns_of(x)
        self._learn(columns.row(x), [y])
        self._columns = columns

    def predict_one(self, x: Example, **kwargs: object) -> Label | None:
        """The most likely class, or None before the first example."""
        if self._columns is None:
            return None
        return self._labels(self._columns.row(x))[0]

    def predict_proba_one(self, x: Example, **kwargs: object) -> dict[Label, float]:
        """The probability of every class seen so far."""
        if self._columns is None:
            return {}
        return dict(
            zip(self._classifiers, self._shares(self._columns.row(x))[0].tolist(), strict=True)
        )

    def learn_many(self, X: DataFrame, y: Series) -> None:
        """Learn from the rows of a DataFrame, one at a time."""
        columns = self._columns or FeatureColumns(tuple(X.columns))
        rows, labels = columns.rows(X), list(y)
        firsts = [labels.index(label) for label in dict.fromkeys(labels)]
        cuts = [i for i in firsts if labels[i] not in self._classifiers and i > 0]
        for start, stop in zip([0, *cuts], [*cuts, len(labels)], strict=True):
            self._learn(rows[start:stop], labels[start:stop])
        self._columns = columns

    def predict_many(self, X: DataFrame) -> Series:
        """The most likely class of every row, as a Series."""
        import pandas as pd

        labels = [None] * len(X) if self._columns is None else self._labels(self._columns.rows(X))
        return pd.Series(labels, index=X.index, dtype=object)

    def predict_proba_many(self, X: DataFrame) -> DataFrame:
        """The probability of every class seen so far, as a DataFrame."""
        import pandas as pd

        if self._columns is None:
            return pd.DataFrame(index=X.index)
        shares = self._shares(self._columns.rows(X))
        return pd.DataFrame(shares, index=X.index, columns=list(self._classifiers))

    @property
    def _multiclass(self) -> bool:
        return True

    def _learn(self, rows: Floats, labels: list[Label]) -> None:
        """Learn from rows, of which only the first may belong to a new class."""
        if labels[0] not in self._classifiers:
            self._classifiers[labels[0]] = copy.deepcopy(self._none)
        for label, classifier in self._classifiers.items():
            _teach(classifier, rows, [1 if y == label else -1 for y in labels])
        _teach(self._none, rows, [-1] * len(labels))

    def _values(self, rows: Floats) -> Floats:
        """z of every class, shape (n, classes)."""
        values = [model.decision_function(rows) for model in self._classifiers.values()]
        return np.stack(values, axis=1)

    def _labels(self, rows: Floats) -> list[Label]:
        classes = list(self._classifiers)
        return [classes[i] for i in self._values(rows).argmax(axis=1)]

    def _shares(self, rows: Floats) -> Floats:
        """The probability of every class, shape (n, classes)."""
        if not hasattr(self._none, "predict_proba"):
            raise NotImplementedError(f'predict_proba needs loss="logistic", got {self.loss!r}.')
        shares = np.maximum(expit(self._values(rows)), np.finfo(float).tiny)
        return shares / shares.sum(axis=1, keepdims=True)


def _teach(classifier: StreamingClassifier, rows: Floats, sides: list[int]) -> None:
    """Learn from rows of the class, with side 1, and of others, with side -1."""
    if len(rows) == 1 and hasattr(classifier, "state_"):
        classifier.learn_one(rows[0], sides[0])
    else:
        classifier.partial_fit(rows, sides, classes=(-1, 1))
