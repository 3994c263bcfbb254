"""Bad input gets one sentence of ours, which names the argument; odd but good input works.

A row of a table is: what is wrong, the name that the message must hold, the call, the type of
the error, and a pattern for the message.
"""

import datetime
import re
import time
import traceback
import tracemalloc
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC

from hplus import (
    Box,
    Constant,
    Custom,
    Finite,
    Function,
    Gaussian,
    HeteroscedasticRegressor,
    Huber,
    Interval,
    KernelClassifier,
    KernelRegressor,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Nugget,
    Nystroem,
    Periodic,
    Poisson,
    PoissonLog,
    Polygon,
    Polynomial,
    Quantile,
    QuantilesRegressor,
    RandomFourier,
    RationalQuadratic,
    Scalar,
    SoSRegressor,
    _checks,
    double_integral,
    is_psd,
    load,
    mean_embedding,
    product_integral,
    save,
)
from hplus.losses import Hinge

LEAKS = re.compile(
    r"broadcast|ufunc|array_function|could not|inhomogeneous|setting an array|dtype\(|NoneType|"
    r"np\.(?!reshape)\w+\(|has no attribute|not callable|positional|operand \d|Found input|"
    r"Found array|Invalid parameter|Valid parameters|instance is not fitted|Seed|RandomState|"
    r"matmul|DType"
)
"""Words of numpy, scipy and scikit-learn that must not reach a user."""


def refused(call, error, name, pattern):
    """`call` raises an `error`, of that very type, with one sentence of ours."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is error
    assert re.search(pattern, message), message
    assert re.search(rf"\b{name}\b", message), f"{name} is not named in: {message}"
    assert "\n" not in message
    assert re.search(r"[.?!]\s", message) is None, f"more than one sentence: {message}"
    assert len(message) < 300
    assert LEAKS.search(message) is None, message
    assert not [file for file in raising_files(caught.value) if re.search("numpy|scipy", file)]


def raising_files(error):
    """The file in which an error was raised, and those of the errors shown before it."""
    while error is not None:
        yield traceback.extract_tb(error.__traceback__)[-1].filename
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def table(rows, *names):
    """One test for each row, with what is wrong as its name."""
    arguments = [pytest.param(*row[1:], id=row[0]) for row in rows]
    return pytest.mark.parametrize(names or ("name", "call", "error", "pattern"), arguments)


def frozen(array):
    array.flags.writeable = False
    return array


X = frozen(np.linspace(0.0, 1.0, 24).reshape(12, 2))
LINE = frozen(np.linspace(0.0, 1.0, 5)[:, None])
Y = frozen(3.0 * np.sin(X[:, 0]))
LABELS = frozen(np.arange(12) % 2)
G = Gaussian(1.0)
F = Function(G, X, Y)
TABLE = Finite(np.eye(2))
SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]
POSITIVE = "must be a positive finite number, got"


def spoiled(array, number, *place):
    """A copy of `array` with `number` at `place`."""
    copy = np.array(array, dtype=float)
    copy[place] = number
    return copy


def nan_gram(A, B):
    return np.full((len(A), len(B)), np.nan)


KERNELS = [
    ("negative scale", "scale", lambda: Gaussian(-1), ValueError, rf"{POSITIVE} -1\.$"),
    ("zero scale", "scale", lambda: Laplace(0), ValueError, rf"{POSITIVE} 0\.$"),
    ("NaN scale", "scale", lambda: Matern32(np.nan), ValueError, rf"{POSITIVE} nan\.$"),
    ("infinite scale", "scale", lambda: Matern52(np.inf), ValueError, rf"{POSITIVE} inf\.$"),
    ("huge scale", "scale", lambda: Gaussian(10**400), ValueError, rf"{POSITIVE} 10+…\.$"),
    ("text scale", "scale", lambda: Gaussian("wide"), TypeError, rf"{POSITIVE} 'wide'\.$"),
    ("text among scales", "scale", lambda: Gaussian([1, "a"]), TypeError, "every scale .* 'a'"),
    ("no scale", "scale", lambda: Gaussian([]), ValueError, "one number for each axis, got"),
    ("nested scales", "scale", lambda: Gaussian([[1, 2], 3]), TypeError, r"got \[1, 2\]\.$"),
    ("complex scale", "scale", lambda: Gaussian(np.complex64(1j)), TypeError, POSITIVE),
    ("date as scale", "scale", lambda: Gaussian(np.timedelta64(1, "ns")), TypeError, POSITIVE),
    ("array as period", "period", lambda: Periodic(np.ones(1)), TypeError, POSITIVE),
    ("negative period", "period", lambda: Periodic(-24), ValueError, POSITIVE),
    ("zero mixture", "mixture", lambda: RationalQuadratic(1, mixture=0), ValueError, POSITIVE),
    ("negative constant", "value", lambda: Constant(-1), ValueError, POSITIVE),
    ("half a degree", "degree", lambda: Polynomial(0.5), ValueError, "whole number of at least 1"),
    ("text degree", "degree", lambda: Polynomial("2"), ValueError, "whole number .*, got '2'"),
    ("negative offset", "offset", lambda: Polynomial(2, -1), ValueError, "at least 0, got -1"),
    ("too many scales", "scales", lambda: Gaussian([1, 2, 3])(X), ValueError, "for 2 col"),
    ("column too far", "columns", lambda: Linear(columns=[2])(X), ValueError, "must be below 2"),
    ("negative column", "column", lambda: Gaussian(1, columns=[-1]), ValueError, "least 0, got -1"),
    ("repeated column", "columns", lambda: Gaussian(1, columns=[0, 0]), ValueError, "distinct"),
    ("no columns", "columns", lambda: Gaussian(1, columns=[]), ValueError, r"got \[\]"),
    ("named column", "column", lambda: Gaussian(1, columns=["east"]), ValueError, "got 'east'"),
    ("ragged columns", "column", lambda: Gaussian(1, columns=[[0], [1, 2]]), ValueError, "whole"),
    ("indefinite table", "matrix", lambda: Finite([[1, 2], [2, 1]]), ValueError, "is -1"),
    ("lopsided table", "matrix", lambda: Finite([[1, 2], [0, 1]]), ValueError, "an asymmetric"),
    ("table not square", "matrix", lambda: Finite(np.ones((2, 3))), ValueError, r"shape \(2, 3\)"),
    ("empty table", "matrix", lambda: Finite([]), ValueError, "square and not empty"),
    ("NaN in a table", "matrix", lambda: Finite([[np.nan]]), ValueError, "row 0, column 0"),
    ("text as table", "matrix", lambda: Finite("abc"), TypeError, "only real numbers, got str"),
    ("half a table's number", "X", lambda: TABLE([[0.5]]), ValueError, "0 to 1 .*got 0.5 in"),
    ("number off the table", "X", lambda: TABLE([[0], [2]]), ValueError, "got 2 in row 1"),
    ("negative table's number", "X", lambda: TABLE([[-1]]), ValueError, "got -1 in row 0"),
    ("two columns for a table", "X", lambda: TABLE(X), ValueError, r"choose one with columns="),
    ("Scalar of a number", "function", lambda: Scalar(3.0), TypeError, r"be callable, got 3\.0"),
    ("Custom of a name", "function", lambda: Custom("rbf"), TypeError, "be callable, got 'rbf'"),
    ("Scalar of wrong shape", "function", lambda: Scalar(np.sin)(X), ValueError, r"\(12, 2\)"),
    ("Scalar of text", "function", lambda: Scalar(lambda A: ["a"] * 12)(X), TypeError, "real"),
    ("Scalar of nothing", "function", lambda: Scalar(lambda A: None)(X), TypeError, "got None"),
    ("Scalar of NaN", "function", lambda: Scalar(lambda A: A[:, 0] + np.nan)(X), ValueError, "NaN"),
    ("Custom of wrong shape", "function", lambda: Custom(np.add)(LINE), ValueError, r"\(5, 5\)"),
    ("Custom of NaN", "function", lambda: Custom(nan_gram)(X), ValueError, "144 NaN or inf"),
    ("unclear promise", "nonnegative", lambda: Custom(np.dot, "yes"), TypeError, "True or False"),
    ("kernel plus number", "Gaussian", lambda: G + 1.0, TypeError, "unsupported operand"),
    ("number plus kernel", "Gaussian", lambda: 1.0 + G, TypeError, "unsupported operand"),
    ("negative factor", "factor", lambda: -2 * G, ValueError, rf"{POSITIVE} -2\.$"),
    ("zero factor", "factor", lambda: 0 * G, ValueError, POSITIVE),
    ("array as factor", "factor", lambda: np.ones(2) * G, TypeError, POSITIVE),
    ("X and Z of two widths", "Z", lambda: G(X, LINE), ValueError, "Z must have 2 columns, got 1"),
    ("points on a line", "X", lambda: G([1.0, 2.0]), ValueError, r"use X\.reshape\(-1, 1\)"),
    ("a point alone", "X", lambda: G(1.0), ValueError, r"two dimensions.*got shape \(\); use X"),
    ("points in a cube", "X", lambda: G(np.ones((2, 2, 2))), ValueError, r"shape \(2, 2, 2\)\.$"),
    ("NaN in points", "X", lambda: G([[0.0], [np.nan]]), ValueError, "row 1, column 0: drop"),
    ("infinity in points", "Z", lambda: G(X, [[0.0, np.inf]]), ValueError, "row 0, column 1"),
    ("text in points", "X", lambda: G([["a"]]), TypeError, "only real numbers, got list"),
    ("complex points", "X", lambda: G(np.array([[1j]])), TypeError, r"got complex128\.$"),
    ("no points", "X", lambda: G(None), TypeError, r"only real numbers, got None\.$"),
    ("ragged points", "X", lambda: G([[1], [1, 2]]), TypeError, "with rows of unequal length"),
    ("sparse points", "X", lambda: G(sparse.eye_array(3)), TypeError, r"sparse .* use its toarray"),
    ("diagonal of a line", "X", lambda: G.diag([1.0, 2.0]), ValueError, "two dimensions"),
    ("endless features", "Gaussian", lambda: G.features(X), ValueError, "approximate it"),
    ("points too far apart", "scale", lambda: Gaussian(1e-300)([[0.0], [1e99]]), OverflowError,
     "points divided by the scale .* overflow: rescale the points"),
    ("a Gram matrix too large", "kernel", lambda: G(np.zeros((10**6, 1))), MemoryError, "7450.6"),
    ("is_psd of a line", "X", lambda: is_psd(G, [1.0, 2.0]), ValueError, "two dimensions"),
    ("is_psd of NaN", "function", lambda: is_psd(Custom(nan_gram), X), ValueError, "144 NaN"),
    ("unknown part", "scal", lambda: G.replace(scal=2), ValueError, "Gaussian has no parameter"),
]  # fmt: skip

ANOTHER = "can only be combined with another Function, got"
SHARED = "functions must have equal numbers of"
FACTOR = "factor of a function must be a finite number, got"
FUNCTIONS = [
    ("name as kernel", "kernel", lambda: Function("rbf", X, Y), TypeError, "such as Gaussian"),
    (
        "class as kernel",
        "kernel",
        lambda: Function(Gaussian, X, Y),
        TypeError,
        "got the class Gaussian: use Gaussian",
    ),
    ("centers on a line", "centers", lambda: Function(G, Y, Y), ValueError, "two dimensions"),
    ("too few weights", "weights", lambda: Function(G, X, Y[:3]), ValueError, "the 12 centers"),
    ("NaN weights", "weights", lambda: Function(G, LINE, LINE + np.nan), ValueError, "5 NaN"),
    ("text weights", "weights", lambda: Function(G, LINE, list("abcde")), TypeError, "real"),
    (
        "weights in a cube",
        "weights",
        lambda: Function(G, X, np.ones((12, 1, 1))),
        ValueError,
        "one row for each of the 12 centers",
    ),
    ("called too narrow", "X", lambda: F(LINE), ValueError, "X must have 2 columns, got 1"),
    ("called on NaN", "X", lambda: F([[np.nan, 0.0]]), ValueError, "finite numbers, got 1 NaN"),
    ("plus a number", "Function", lambda: F + 1, TypeError, rf"{ANOTHER} 1\.$"),
    ("minus a number", "Function", lambda: F - 1, TypeError, rf"{ANOTHER} 1\.$"),
    ("inner product with points", "Function", lambda: F @ X, TypeError, ANOTHER),
    ("points times function", "Function", lambda: X @ F, TypeError, "unsupported operand"),
    ("distance to a number", "Function", lambda: F.distance(3.0), TypeError, ANOTHER),
    ("text factor", "factor", lambda: F * "a", TypeError, rf"{FACTOR} 'a'\.$"),
    ("NaN factor", "factor", lambda: np.nan * F, ValueError, rf"{FACTOR} nan\.$"),
    ("array factor", "factor", lambda: np.ones(3) * F, TypeError, FACTOR),
    ("two kernels", "kernel", lambda: F + Function(Linear(), X, Y), ValueError, "share one kernel"),
    ("two widths", "columns", lambda: F @ Function(G, LINE, np.ones(5)), ValueError, SHARED),
    ("two outputs", "outputs", lambda: F + Function(G, X, np.ones((12, 2))), ValueError, SHARED),
    ("projected on NaN", "centers", lambda: F.project([[0, np.nan]]), ValueError, "1 NaN or inf"),
]

BELOW = "low must be below high on every axis, got"
WINDOWS = [
    ("reversed interval", "low", lambda: Interval(1, 0), ValueError, rf"{BELOW} 1 and 0\.$"),
    ("empty interval", "low", lambda: Interval(1, 1), ValueError, BELOW),
    ("NaN in an interval", "high", lambda: Interval(0, np.nan), ValueError, "a number, got"),
    ("text in an interval", "low", lambda: Interval("a", 1), TypeError, "only real numbers"),
    ("half an interval", "low", lambda: Interval(None, 1), TypeError, "got None"),
    ("number as unit", "unit", lambda: Interval(0, 1, unit=3), TypeError, "must be a string, for"),
    ("reversed box", "low", lambda: Box([0, 1], [1, 0]), ValueError, BELOW),
    ("box of two lengths", "low", lambda: Box([0], [1, 1]), ValueError, BELOW),
    ("box of numbers", "low", lambda: Box(0, 1), ValueError, "one finite number for each axis"),
    ("box without volume", "volume", lambda: Box([0] * 4, [1e-99] * 4), ValueError, "rescale"),
    ("box without end", "high", lambda: Box([0], [np.inf]), ValueError, "one finite number for"),
    ("crossed polygon", "outer", lambda: Polygon(np.take(SQUARE, [0, 2, 1, 3], 0)), ValueError,
     r"self-intersection near \(0.5, 0.5\): correct"),
    ("polygon on a line", "outer", lambda: Polygon([[0, 0], [1, 1], [2, 2]]), ValueError, "area"),
    ("polygon of two corners", "outer", lambda: Polygon(SQUARE[:2]), ValueError, "at least 3"),
    ("hole outside", "holes", lambda: Polygon(SQUARE, [np.add(SQUARE, 5)]), ValueError, "outside"),
    ("number of holes", "holes", lambda: Polygon(SQUARE, 3), TypeError, "sequence of rings"),
    ("points outside", "X", lambda: Interval(0, 1).require("X", [[0.5], [2]]), ValueError,
     r"got 1 of 2 points outside Interval.*, the first in row 1: drop them"),
    ("events outside", "events", lambda: Polygon(SQUARE).require("events", [[2, 2]]), ValueError,
     "events must lie in the window"),
    ("NaN in events", "X", lambda: Box([0], [1]).require("X", [[np.nan]]), ValueError, "finite"),
    ("window times number", "Box", lambda: Box([0], [1]) * 3, TypeError, "unsupported operand"),
    ("quadrature of order 0", "order", lambda: Interval(0, 1).quadrature(0), ValueError, "least 1"),
    ("minus one sample", "n", lambda: Interval(0, 1).sample(-1), ValueError, "at least 0, got -1"),
]  # fmt: skip

UNIT = Interval(0.0, 1.0)
NO_INTEGRAL = "Finite has no integral"
INTEGRALS = [
    ("points too wide", "X", lambda: mean_embedding(G, UNIT, X), ValueError, "1 column, got 2"),
    ("points too narrow", "C", lambda: product_integral(G, Box([0, 0], [1, 1]), LINE), ValueError,
     "C must have 2 columns, got 1"),
    ("second points", "D", lambda: product_integral(G, UNIT, LINE, X), ValueError, "D must have 1"),
    ("NaN in points", "X", lambda: mean_embedding(G, UNIT, [[np.nan]]), ValueError, "finite"),
    ("embedding of a table", "Finite", lambda: mean_embedding(TABLE, UNIT, LINE), ValueError,
     NO_INTEGRAL),
    ("integral of a table", "Finite", lambda: double_integral(2 * TABLE, UNIT), ValueError,
     NO_INTEGRAL),
    ("pair as window", "window", lambda: mean_embedding(G, (0, 1), LINE), TypeError, "got .0, 1."),
    ("class as window", "window", lambda: double_integral(G, Interval), TypeError, "such as"),
    ("nothing as window", "window", lambda: product_integral(G, None, LINE), TypeError, "got None"),
    ("name as kernel", "kernel", lambda: mean_embedding("rbf", UNIT, LINE), TypeError, "got 'rbf'"),
    ("class as kernel", "kernel", lambda: double_integral(Gaussian, UNIT), TypeError, "a kernel"),
]  # fmt: skip

WHOLE = "must be a whole number of at least 1, got"
FEATURES = [
    ("no landmarks", "landmarks", lambda: Nystroem(0), ValueError, f"{WHOLE} 0"),
    ("negative landmarks", "landmarks", lambda: Nystroem(-1), ValueError, f"{WHOLE} -1"),
    ("half a landmark", "landmarks", lambda: Nystroem(2.5), ValueError, f"{WHOLE} 2.5"),
    ("no frequencies", "frequencies", lambda: RandomFourier(0), ValueError, f"{WHOLE} 0"),
    ("float frequencies", "frequencies", lambda: RandomFourier(3.0), ValueError, f"{WHOLE} 3.0"),
    ("Linear has no spectrum", "kernel", lambda: RandomFourier(3)(Linear(), X), ValueError,
     r"continuous and stationary.*got Linear\(\): use Nystroem"),
    ("a nugget has no spectrum", "kernel", lambda: RandomFourier(3)(G + Nugget(), X), ValueError,
     "use Nystroem"),
    ("no rows", "X", lambda: Nystroem(3)(G, np.ones((0, 2))), ValueError, "must have a row"),
    ("landmarks on a line", "X", lambda: Nystroem(3)(G, Y), ValueError, "two dimensions"),
    ("negative weights", "sample_weight", lambda: Nystroem(3)(G, X, -np.ones(12)), ValueError,
     "at least 0 for each of the 12 rows"),
    ("features too narrow", "X", lambda: Nystroem(3)(G, X)(LINE), ValueError, "2 columns, got 1"),
]  # fmt: skip


class Broken:
    """A loss whose slopes are what they are told to be."""

    def __init__(self, slopes):
        self.slopes = slopes

    def value(self, y, f):
        return (f - y) ** 2

    def slope(self, y, f):
        return self.slopes


def regress(X=X, y=Y, *, sample_weight=None, exposure=None, **settings):
    model = KernelRegressor(**({"kernel": G} | settings))
    return partial(model.fit, X, y, sample_weight=sample_weight, exposure=exposure)


def classify(X=X, y=LABELS, *, sample_weight=None, **settings):
    model = KernelClassifier(**({"kernel": G} | settings))
    return partial(model.fit, X, y, sample_weight=sample_weight)


ONE_LEVEL = "level must be a number between 0 and 1, got"
OWN = r"or an object with value\(y, f\) and slope\(y, f\), got"
LOSSES = [
    ("level 0", "level", lambda: Quantile(0), ValueError, rf"{ONE_LEVEL} 0\.$"),
    ("level 1", "level", lambda: Quantile(1), ValueError, rf"{ONE_LEVEL} 1\.$"),
    ("level in percent", "level", lambda: Quantile(90), ValueError, ONE_LEVEL),
    ("two levels", "level", lambda: Quantile([0.1, 0.9]), TypeError, ONE_LEVEL),
    ("negative threshold", "threshold", lambda: Huber(-1), ValueError, f"{POSITIVE} -1"),
    ("unknown loss", "loss", regress(loss="sqared"), ValueError, "one of 'squared', .*'sqared'"),
    ("no loss", "loss", regress(loss=None), ValueError, rf"{OWN} None\.$"),
    ("function as loss", "loss", regress(loss=nan_gram), ValueError, f"{OWN} <function nan_gram"),
    ("class as loss", "loss", regress(loss=Huber), TypeError, "got the class Huber: use Huber"),
    ("rates for a function of any sign", "loss", regress(loss=Poisson()), ValueError, "_log"),
    ("a loss for labels in regression", "loss", regress(y=LABELS, loss=Hinge()), ValueError,
     r"got Hinge\(\): use KernelClassifier for labels"),
    ("its name", "loss", regress(y=LABELS, loss="hinge"), ValueError, "one of .*, got 'hinge'"),
    ("a slope that is not the value's", "loss.slope", regress(loss=Broken(Y * 0 + 7.0)), ValueError,
     "must be the derivative of loss.value"),
    ("negative counts", "y", regress(y=Y - 1, loss=PoissonLog()), ValueError,
     r"Negative values in y: .* at least 0, got -1\.$"),
    ("slopes of wrong shape", "loss.slope", regress(loss=Broken(np.ones(3))), ValueError,
     r"shape \(12,\), like y, got \(3,\)"),
    ("slopes of text", "loss.slope", regress(loss=Broken("steep")), TypeError, "only real numbers"),
    ("slopes of NaN", "loss.slope", regress(loss=Broken(Y + np.nan)), ValueError, "not be NaN"),
    ("regression loss for labels", "loss", classify(loss="huber"), ValueError,
     "one of 'hinge', 'squared_hinge', 'logistic', got 'huber': use KernelRegressor"),
    ("unknown loss for labels", "loss", classify(loss="logistc"), ValueError, "got 'logistc': use"),
]  # fmt: skip

AUTO = 'kernel must be "auto" or a kernel such as Gaussian'
SETTINGS = [
    ("name as kernel", "kernel", {"kernel": "gaussian"}, TypeError, f"{AUTO}.*, got 'gaussian'"),
    ("no kernel", "kernel", {"kernel": None}, TypeError, f"{AUTO}.*, got None"),
    ("class as kernel", "kernel", {"kernel": Gaussian}, TypeError, r"class Gaussian: use"),
    ("function as kernel", "kernel", {"kernel": np.dot}, TypeError, r"wrap it as Custom\(kernel\)"),
    ("foreign kernel", "kernel", {"kernel": RBF()}, TypeError, r"RBF.*: wrap it as Custom"),
    ("kernel of other columns", "columns", {"kernel": Linear(columns=[5])}, ValueError, "below 2"),
    ("kernel of three scales", "scales", {"kernel": Gaussian([1, 2, 3])}, ValueError, "for 2 col"),
    ("kernel of a table", "X", {"kernel": TABLE}, ValueError, "got 2 columns: choose one"),
    ("kernel of NaN", "function", {"kernel": Custom(nan_gram)}, ValueError, "finite numbers"),
    ("negative kernel", "kernel", {"kernel": Custom(lambda A, B: -A @ B.T)}, ValueError,
     r"semi-definite, got k\(x, x\) = -1.91493 for row 11"),
    ("penalty 0", "penalty", {"penalty": 0}, ValueError, rf"{POSITIVE} 0\.$"),
    ("negative penalty", "penalty", {"penalty": -1e-3}, ValueError, POSITIVE),
    ("NaN penalty", "penalty", {"penalty": np.nan}, ValueError, POSITIVE),
    ("text penalty", "penalty", {"penalty": "1e-3"}, TypeError, r"positive finite number, got '1e"),
    ("landmarks 0", "landmarks", {"landmarks": 0, "kernel": "auto"}, ValueError, f"{WHOLE} 0"),
    ("landmarks -1", "landmarks", {"landmarks": -1}, ValueError, f"{WHOLE} -1"),
    ("landmarks 2.5", "landmarks", {"landmarks": 2.5}, ValueError, f"{WHOLE} 2.5"),
    ("points as landmarks", "landmarks", {"landmarks": X}, ValueError, f"{WHOLE} an array"),
    ("negative weight", "sample_weight", {"sample_weight": spoiled(np.ones(12), -1, 3)}, ValueError,
     "non-negative in every row, got -1 in row 3"),
    ("zero weights", "sample_weight", {"sample_weight": np.zeros(12)}, ValueError,
     "positive in at least one row, got zero in every row"),
    ("NaN weight", "sample_weight", {"sample_weight": spoiled(np.ones(12), np.nan, 3)}, ValueError,
     "1 NaN or inf, the first at row 3"),
    ("NaN for all weights", "sample_weight", {"sample_weight": np.nan}, ValueError, "finite, got"),
    ("infinite weight", "sample_weight", {"sample_weight": spoiled(Y, np.inf, 0)}, ValueError,
     "finite numbers"),
    ("huge weights", "sample_weight", {"sample_weight": np.full(12, 1e308)}, ValueError,
     r"at most 1e\+100"),
    ("too few weights", "sample_weight", {"sample_weight": np.ones(3)}, ValueError, r"\(12,\)"),
    ("weights in a column", "sample_weight", {"sample_weight": LINE}, ValueError, r"\(12,\)"),
    ("named weights", "sample_weight", {"sample_weight": "balanced"}, TypeError, "got str"),
    ("transposed X", "X", {"X": X.T}, ValueError, "of the 2 rows of X, got 12: transpose X"),
    ("no y", "y", {"y": None}, ValueError, "the target y is None: call fit"),
    ("short y", "y", {"y": LABELS[:5]}, ValueError, "for each of the 12 rows of X, got 5"),
    ("empty y", "y", {"y": []}, ValueError, "got 0"),
    ("NaN in y", "y", {"y": spoiled(LABELS, np.nan, 4)}, ValueError, "NaN or inf, the first at"),
    ("infinity in y", "y", {"y": spoiled(LABELS, np.inf, 4)}, ValueError, "finite numbers"),
    ("missing y", "y", {"y": pd.Series([0, None] * 6, dtype="Int64")}, ValueError, "6 NaN or inf"),
    ("y in a cube", "y", {"y": np.ones((12, 1, 1))}, ValueError, r"got shape \(12, 1, 1\)"),
    ("number as y", "y", {"y": 3.0}, ValueError, r"one target per row, got shape \(\)"),
    ("no columns in frames", "X", {"X": pd.DataFrame(index=range(12))}, ValueError, "one column"),
    ("mixed column names", "X", {"X": pd.DataFrame({"a": Y, 1: Y})}, ValueError, "all strings"),
    ("column names twice", "X", {"X": pd.DataFrame(X, columns=["a", "a"])}, ValueError, "distinct"),
    ("huge X", "X", {"X": 1e300 * X}, ValueError, r"at most 1e\+100 .* 1e\+300: use a larger unit"),
    ("a polynomial too high", "kernel", {"X": 1e90 * X, "kernel": Polynomial(3)}, OverflowError,
     r"overflows in row \d+ of X, got Polynomial\(3\): rescale X"),
]  # fmt: skip

RATES = {"y": LABELS, "loss": "poisson_log"}
REAL = "y must contain only real numbers, got"
REGRESSION = [
    ("two outputs for one loss", "y", regress(y=X, loss="huber"), ValueError, "for each column"),
    ("text as y", "y", regress(y=["a", "b"] * 6), TypeError,
     f"{REAL} the text 'a' at row 0: convert text to numbers first"),
    ("a word among numbers", "y", regress(y=["1.5", "a"] * 6), TypeError, "text 'a' at row 1"),
    ("text in objects", "y", regress(y=np.array([1, "b"] * 6, object)), TypeError, "'b' at row 1"),
    ("numbers as text", "y", regress(y=["1", "2"] * 6), TypeError, "text '1' at row 0"),
    ("dates as y", "y", regress(y=np.full(12, "2020", "M8[D]")), TypeError, "count days or"),
    ("complex y", "y", regress(y=Y + 1j), TypeError, f"{REAL} complex128"),
    ("ragged y", "y", regress(y=[[1], [1, 2]] * 6), TypeError, "rows of unequal length"),
    ("sparse y", "y", regress(y=sparse.eye_array(12)), TypeError, "toarray"),
    ("huge y", "y", regress(y=1e200 * Y), ValueError, r"at most 1e\+100 in size"),
    ("exposure of another loss", "exposure", regress(exposure=Y), ValueError, "poisson_log"),
    ("zero exposure", "exposure", regress(exposure=spoiled(Y, 0, 0), **RATES), ValueError,
     "above 0 in every row, got 0 in row 0: drop such rows"),
    ("negative exposure", "exposure", regress(exposure=Y - 1, **RATES), ValueError, "got -1 in"),
    ("NaN exposure", "exposure", regress(exposure=spoiled(Y, np.nan, 5), **RATES), ValueError,
     "row 5"),
    ("short exposure", "exposure", regress(exposure=Y[:3], **RATES), ValueError, r"shape \(12,\)"),
    ("unknown parameter", "penalti", lambda: KernelRegressor().set_params(penalti=1), ValueError,
     "KernelRegressor has no parameter 'penalti': use one of .*'penalty'"),
    ("scale of no kernel", "kernel", lambda: KernelRegressor().set_params(kernel__scale=2),
     ValueError, "kernel must be a value with parameters to set 'kernel__scale', got 'auto'"),
    ("bad scale set", "scale", lambda: KernelRegressor(G).set_params(kernel__scale=-2), ValueError,
     POSITIVE),
]  # fmt: skip

UNKNOWN = "Unknown label type in y: labels must be all text or all whole numbers, got"
CLASSIFICATION = [
    ("one class", "y", classify(y=np.zeros(12)), ValueError, r"two classes, got 1 class: 0\.0"),
    ("one class by weight", "y", classify(sample_weight=LABELS), ValueError,
     "got 1 class: 1: give another class a positive weight"),
    ("one row", "y", classify(X[:1], LABELS[:1]), ValueError, "got 1 class: 0"),
    ("continuous labels", "y", classify(y=Y), ValueError, "continuous numbers such as 0.26"),
    ("labels in columns", "y", classify(y=X > 0.5), ValueError, "one estimator for each column"),
    ("labels of two types", "y", classify(y=np.array([1, "b"] * 6, object)), ValueError,
     f"{UNKNOWN} 1 in row 0"),
    ("missing labels", "y", classify(y=np.array([1, None] * 6)), ValueError, f"{UNKNOWN} None in"),
    ("missing text", "y", classify(y=pd.Series(["a", None] * 6)), ValueError, f"{UNKNOWN} nan in"),
    ("dates as labels", "y", classify(y=np.full(12, "2020", "M8[D]")), ValueError, UNKNOWN),
    ("complex labels", "y", classify(y=LABELS + 1j), ValueError, f"{UNKNOWN} complex128"),
    ("bytes as labels", "y", classify(y=np.array([b"a", b"b"] * 6)), ValueError, UNKNOWN),
    ("ragged labels", "y", classify(y=[[1], [1, 2]] * 6), ValueError, UNKNOWN),
    ("unknown solver", "solver", classify(solver="libsvm"), ValueError, "'primal', got 'libsvm'"),
    ("no solver", "solver", classify(solver=None), ValueError, "'primal', got None"),
    ("dual of logistic", "solver", classify(solver="dual", loss="logistic"), ValueError,
     'got loss Logistic.*: use solver="primal"'),
    ("dual of landmarks", "solver", classify(solver="dual", landmarks=3), ValueError, "landmarks"),
]  # fmt: skip

DAYS = pd.date_range("2020-01-01", periods=12)
REALS = "X must contain only real numbers, got"
POINTS = [
    ("no rows", np.ones((0, 2)), ValueError, r"one row, got 0 sample\(s\) .* minimum of 1"),
    ("an empty list", [], ValueError, r"one row, got 0 sample\(s\)"),
    ("no columns", np.ones((12, 0)), ValueError, r"one column, got 0 feature\(s\)"),
    ("nothing", None, TypeError, rf"{REALS} None\.$"),
    ("a number", 3.0, ValueError, r"two dimensions.*got shape \(\): Reshape your data"),
    ("a line", Y, ValueError, r"got shape \(12,\): Reshape your data .*X, \(-1, 1\)"),
    ("a series", pd.Series(Y), ValueError, r"got shape \(12,\): Reshape your data"),
    ("a cube", np.ones((12, 2, 2)), ValueError, r"got shape \(12, 2, 2\)"),
    ("rows of unequal length", [[1, 2]] * 11 + [[1]], TypeError, "list with rows of unequal"),
    ("NaN", spoiled(X, np.nan, 3, 1), ValueError, "got 1 NaN or inf, the first at row 3, column 1"),
    ("infinity", spoiled(X, -np.inf, 2, 0), ValueError, "the first at row 2, column 0: drop or"),
    ("None in objects", np.full((12, 2), None), ValueError, "24 NaN or inf, the first at"),
    ("missing numbers", pd.DataFrame({"a": pd.array([1, None] * 6, "Int64")}), ValueError, "6"),
    ("missing polars numbers", pl.DataFrame({"a": [None] + [1.0] * 11}), ValueError, "1 NaN or"),
    ("masked numbers", np.ma.masked_array(X, X > 0.5), TypeError, "masked entries: drop or fill"),
    ("text", np.full((12, 2), "a"), TypeError, rf"{REALS} text\.$"),
    ("numbers as text", np.full((12, 2), "1"), TypeError, rf"{REALS} text\.$"),
    ("text in a list", [["a", "b"]] * 12, TypeError, rf"{REALS} list\.$"),
    ("text in objects", np.full((12, 2), "a", object), TypeError, "object with 'a' at row 0"),
    ("numbers in text objects", np.full((12, 2), "1", object), TypeError, "object with '1' at row"),
    ("a dict in objects", np.full((12, 1), {"a": 1}), TypeError, r"with \{'a': 1\} at row 0"),
    ("a text column", pd.DataFrame({"a": Y, "b": ["u"] * 12}), TypeError, "'u' at row 0, column 1"),
    ("a polars text column", pl.DataFrame({"a": ["u"] * 12}), TypeError, "'u' at row 0, column 0"),
    ("categories", pd.DataFrame({"a": pd.Categorical(["u", "v"] * 6)}), TypeError, "'u' at row 0"),
    ("dates", np.full((12, 1), "2020", "M8[D]"), TypeError, r"datetime64\[D\]: count days"),
    ("a date column", pd.DataFrame({"a": DAYS}), TypeError, "DataFrame: count days or seconds"),
    ("a date among columns", pd.DataFrame({"a": DAYS, "b": Y}), TypeError, "Timestamp.* at row 0"),
    ("a polars date column", pl.DataFrame({"a": DAYS}), TypeError, "count days or seconds"),
    ("dates in a list", [[datetime.date(2020, 1, 1)]] * 12, TypeError, r"datetime.date\(.* row 0"),
    ("complex numbers", X + 1j, ValueError, "Complex data not supported: X must hold real numbers"),
    ("complex numbers in a list", [[1j, 2]] * 12, TypeError, "list of complex numbers"),
    ("a sparse matrix", sparse.csr_array(X), TypeError, r"Sparse .* X, .* use X\.toarray\(\).*One"),
    ("a name", "points.csv", TypeError, rf"{REALS} str\.$"),
    ("a dict", {"a": [1, 2]}, TypeError, rf"{REALS} dict\.$"),
]  # fmt: skip


@cache
def fitted(machine):
    return machine(G).fit(X, LABELS)


TAKES_POINTS = {
    "regressor fit": lambda X: regress(X)(),
    "classifier fit": lambda X: classify(X)(),
    "regressor predict": lambda X: fitted(KernelRegressor).predict(X),
    "classifier predict": lambda X: fitted(KernelClassifier).predict(X),
    "squares fit": lambda X: SoSRegressor(G).fit(X, Y),
    "squares predict": lambda X: fitted(SoSRegressor).predict(X),
    "squares gradient": lambda X: fitted(SoSRegressor).gradient(X),
    "noise fit": lambda X: HeteroscedasticRegressor(G).fit(X, Y),
    "noise predict": lambda X: fitted(HeteroscedasticRegressor).predict_std(X),
    "quantiles fit": lambda X: QuantilesRegressor(kernel=G).fit(X, Y),
}


@table(KERNELS)
def test_a_kernel_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(FUNCTIONS)
def test_a_function_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(WINDOWS)
def test_a_window_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(INTEGRALS)
def test_an_integral_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(FEATURES)
def test_a_choice_of_features_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(LOSSES)
def test_a_loss_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(REGRESSION)
def test_the_regressor_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@table(CLASSIFICATION)
def test_the_classifier_refuses(name, call, error, pattern):
    refused(call, error, name, pattern)


@pytest.mark.parametrize("machine", [regress, classify])
@table(SETTINGS, "name", "settings", "error", "pattern")
def test_both_machines_refuse(machine, name, settings, error, pattern):
    refused(machine(**settings), error, name, pattern)


@pytest.mark.parametrize("method", TAKES_POINTS)
@table(POINTS, "points", "error", "pattern")
def test_no_method_accepts_points_that_are(method, points, error, pattern):
    refused(lambda: TAKES_POINTS[method](points), error, "X", pattern)


# After fit


@pytest.mark.parametrize(
    "machine", [KernelRegressor, KernelClassifier, SoSRegressor, HeteroscedasticRegressor]
)
@pytest.mark.parametrize("shape", [(3, 1), (3, 3), (2, 12)])
def test_points_with_other_columns_than_in_fit_are_refused(machine, shape):
    pattern = rf"X has {shape[1]} features, but {machine.__name__} is expecting 2 features as input"
    refused(lambda: fitted(machine).predict(np.ones(shape)), ValueError, "X", pattern)


@pytest.mark.parametrize(
    "names", [["north", "east"], ["east", "up"], ["east"], ["east", "north", "up"]]
)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_with_other_names_than_in_fit_are_refused(frame, names):
    model = KernelRegressor(G).fit(frame({"east": Y, "north": Y}), Y)
    order = r"the columns seen in fit, in the same order, \['east', 'north'\]"
    pattern = rf"{order}, got {re.escape(repr(names))}"
    refused(lambda: model.predict(frame(dict.fromkeys(names, Y))), ValueError, "X", pattern)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_predicting_before_fitting_is_refused(method):
    call = getattr(KernelClassifier(loss="logistic"), method)
    refused(
        lambda: call(X), NotFittedError, "KernelClassifier", "must be fitted before .* call fit"
    )


def test_probabilities_of_the_hinge_are_refused_with_the_reason():
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        fitted(KernelClassifier).predict_proba(X)
    assert str(caught.value.__cause__) == 'predict_proba needs loss="logistic", got Hinge().'


def test_predictions_that_overflow_are_refused():
    model = KernelRegressor(Polynomial(3)).fit(X, Y)
    refused(lambda: model.predict(1e200 * X + 1), OverflowError, "X", "beyond 1e308 for 12 points")


def test_labels_in_a_column_vector_are_accepted_with_a_warning():
    with pytest.warns(DataConversionWarning, match=r"column-vector y .* pass y.ravel\(\)\.$"):
        model = classify(y=LABELS[:, None])()
    np.testing.assert_array_equal(model.predict(X), fitted(KernelClassifier).predict(X))


# Memory


@pytest.mark.parametrize(
    "fit",
    [
        regress, partial(regress, kernel="auto"), partial(regress, loss="huber"),
        partial(classify, loss="logistic"), partial(classify, solver="primal"),
        partial(classify, kernel=Matern32(1.0)),
    ],
)  # fmt: skip
def test_a_fit_that_needs_too_much_memory_is_refused_before_it_takes_any(fit, monkeypatch):
    monkeypatch.setattr(_checks, "memory_limit", lambda: 2.0**30)
    call = fit(np.arange(20_000.0)[:, None], np.arange(20_000) % 2)
    pattern = r"needs \d+\.\d GiB, but only 1\.0 GiB is available: .*landmarks"
    tracemalloc.start()
    try:
        refused(call, MemoryError, "landmarks", pattern)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_two_hundred_thousand_rows_without_landmarks_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(_checks, "memory_limit", lambda: 16.0 * 2**30)
    start = time.process_time()
    call = regress(np.arange(200_000.0)[:, None], np.zeros(200_000))
    refused(
        call, MemoryError, "landmarks", "A fit on all 200000 points needs 596.0 GiB, but only 16.0"
    )
    assert time.process_time() - start < 5.0


# Files


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where a fitted model is saved, in a folder that has nothing else."""
    monkeypatch.chdir(tmp_path)
    save(fitted(KernelRegressor), "rain.hplus")
    return Path("rain.hplus")


def flipped(content):
    """The file with one bit changed near its end."""
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


DAMAGE = {
    "empty": (lambda content: b"", "not a file written by hplus.save"),
    "foreign": (lambda content: b"easting,northing\n1.5,2.5\n", "not a file written by hplus.save"),
    "cut in its header": (lambda content: content[:40], "it is truncated: copy it again"),
    "cut in its numbers": (lambda content: content[:-20], "truncated or damaged .*: copy it again"),
    "flipped": (flipped, "does not match its checksum: copy it again"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused(damage, path):
    change, pattern = DAMAGE[damage]
    path.write_bytes(change(path.read_bytes()))
    refused(lambda: load(path), ValueError, "rain.hplus", f"cannot be loaded: .*{pattern}")


def test_a_file_of_another_program_is_refused(path):
    save_file({"w": np.ones(3)}, path)
    pattern = "safetensors file that was not written by hplus"
    refused(lambda: load(path), ValueError, "rain.hplus", pattern)


def test_a_path_that_is_no_file_is_refused(path):
    model = load(path)
    refused(partial(load, "rian.hplus"), FileNotFoundError, "path", "rian.hplus: check the name")
    refused(partial(load, "."), IsADirectoryError, "path", "must be a file, got the folder")
    refused(partial(save, model, "."), IsADirectoryError, "path", "add a file name")
    refused(partial(save, model, "a/b.hplus"), FileNotFoundError, "path", "folder that exists")


@pytest.mark.parametrize(
    ("build", "error", "name", "pattern"),
    [
        (KernelRegressor, NotFittedError, "KernelRegressor", "must be fitted before it is saved"),
        (regress(kernel=Custom(RBF())), ValueError, "kernel", "which cannot be saved"),
        (regress(kernel=Scalar(lambda A: A[:, 0])), ValueError, "kernel", "a Python callable"),
        (lambda: G, TypeError, "model", r"got Gaussian\(1.0\)"),
        (lambda: KernelRegressor, TypeError, "model", "must be an estimator"),
        (SVC, TypeError, "model", "must be an estimator that can be stored"),
    ],
    ids=["unfitted", "Custom", "Scalar", "kernel", "class", "foreign"],
)
def test_what_cannot_be_saved_leaves_the_file_as_it_was(build, error, name, pattern, path):
    content = path.read_bytes()
    refused(lambda: save(build(), path), error, name, pattern)
    assert path.read_bytes() == content


# What is odd and must work

ODD = {
    "one row": (X[:1], Y[:1]),
    "two rows": (X[:2], Y[:2]),
    "one column": (X[:, :1], Y),
    "a constant column": (np.column_stack([X[:, 0], np.ones(12)]), Y),
    "equal rows": (np.ones((12, 2)), Y),
    "equal targets": (X, np.ones(12)),
    "targets of zero": (X, np.zeros(12)),
    "whole numbers": (np.arange(24).reshape(12, 2), np.arange(12)),
    "points far away": (1e50 + 1e50 * X, Y),
    "points close together": (1e-50 * X, Y),
}
MACHINES = [
    KernelRegressor(),
    KernelRegressor(G),
    KernelRegressor(G, loss="absolute"),
    KernelRegressor(G, loss="huber"),
    KernelRegressor(G, loss="poisson_log"),
    KernelRegressor(G, landmarks=5),
    SoSRegressor(),
    SoSRegressor(G),
    SoSRegressor(G, "poisson"),
    SoSRegressor(G, "absolute"),
    SoSRegressor(G, "huber", "diagonal"),
    SoSRegressor(G, cone="auto"),
    HeteroscedasticRegressor(),
    QuantilesRegressor(),
    QuantilesRegressor(positive=True, kernel=G),
]


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_unusual_but_valid_data_can_be_fitted(machine, data, few_candidates):
    points, targets = ODD[data]
    assert np.isfinite(machine.fit(points, targets).predict(points)).all()


FORMS = {
    "truth values": lambda A: A > 0.5,
    "objects": lambda A: A.astype(object),
    "lists": lambda A: A.tolist(),
    "nullable numbers": lambda A: (pd.DataFrame if A.ndim == 2 else pd.Series)(A).astype("Float64"),
}
ONE_OF_EACH = [
    KernelRegressor(G),
    SoSRegressor(G),
    HeteroscedasticRegressor(G, cone="full"),
    QuantilesRegressor(kernel=G, cone="full"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("machine", ONE_OF_EACH, ids=repr)
def test_numbers_of_any_form_are_learned_from_as_numbers(machine, form):
    points, targets = FORMS[form](X), FORMS[form](Y)
    plain = [np.array(values, dtype=float) for values in (points, targets)]
    expected = clone(machine).fit(*plain).predict(plain[0])
    assert_array_equal(machine.fit(points, targets).predict(points), expected)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("data", ["two rows", "one column", "equal rows"])
def test_odd_points_are_told_apart(data, loss):
    points = ODD[data][0]
    y = np.array(["dry", "wet"])[LABELS[: len(points)]]
    for kernel in (G, "auto") if data in ("two rows", "equal rows") else (G,):
        predicted = KernelClassifier(kernel, loss).fit(points, y).predict(points)
        assert set(predicted) <= {"dry", "wet"}


@pytest.mark.parametrize("form", [list, pd.Series, pl.Series, pd.Categorical, np.array, tuple])
@pytest.mark.parametrize("labels", [["a", "b"] * 6, [0, 1] * 6, [0.0, 1.0] * 6, [True, False] * 6])
def test_labels_may_be_text_or_whole_numbers_in_any_container(form, labels):
    model = KernelClassifier(G).fit(X, form(labels))
    assert sorted(model.classes_.tolist()) == sorted(set(labels))
    assert model.fit(X, np.array(labels, dtype=object)).classes_.tolist() == sorted(set(labels))


@pytest.mark.parametrize("loss", ["huber", "absolute", "poisson_log"])
def test_a_scale_is_learned_from_one_row(loss):
    assert np.isfinite(KernelRegressor(loss=loss).fit(X[:1], [2.0]).predict(X)).all()
