"""What is kept of a stream: every budget against its textbook, and the promises of KOMP."""

import re

import numpy as np
import pytest

from hplus import (
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    StreamingClassifier,
    StreamingRegressor,
)
from hplus.features import Nystroem, RandomFourier
from hplus.losses import Absolute, Hinge, Huber, Perceptron, Quantile, Squared
from hplus.streaming.budgets import (
    BUDGETS,
    KOMP,
    DoublyStochastic,
    Forgetron,
    Oldest,
    Smallest,
    Unlimited,
    as_budget,
)

NUGGET = 1e-6
G = Gaussian(0.7)


def events(rng, n=80, d=2):
    return rng.uniform(-1.0, 1.0, size=(n, d)), rng.normal(size=n)


def by_place(centers, weights):
    """Atoms in one order, with their weights as the last column."""
    table = np.column_stack([centers, weights])
    return table[np.lexsort(table[:, :-1].T)]


def assert_same_function(model, centers, weights, tolerance):
    f = model.function_
    np.testing.assert_allclose(
        by_place(f.centers, f.weights),
        by_place(np.reshape(centers, (-1, f.centers.shape[1])), weights),
        atol=tolerance,
    )


# KOMP against brute force: every atom is tried, every refit solves the system anew


def gram(kernel, D):
    K = kernel(D)
    return K + NUGGET * np.diag(np.diag(K))


def brute_komp(kernel, D, w, tolerance, size):
    """Indices that stay and their weights; the cheapest atom goes while f̃ stays near."""
    K, kept, v = gram(kernel, D), list(range(len(D))), w
    while kept:
        trials = []
        for j in kept:
            rest, u = [i for i in kept if i != j], np.zeros(len(D))
            if rest:
                u[rest] = np.linalg.solve(K[np.ix_(rest, rest)], K[rest] @ w)
            trials.append((np.sqrt(max((w - u) @ K @ (w - u), 0.0)), rest, u))
        distance, rest, u = min(trials, key=lambda trial: trial[0])
        if distance > tolerance and len(kept) <= size:
            break
        kept, v = rest, u
    return kept, v[kept]


def brute_stream(kernel, budget, X, y, step, decay):
    """A stream of squared losses with `brute_komp` after every step."""
    D, w = np.zeros((0, X.shape[1])), np.zeros(0)
    for x, target in zip(X, y, strict=True):
        z = float(kernel(x[None], D)[0] @ w) if len(D) else 0.0
        beta = -step * 2.0 * (z - target)
        D, w = np.vstack([D, x]), np.append((1.0 - step * decay) * w, beta)
        length = abs(beta) * np.sqrt(kernel.diag(x[None])[0])
        tolerance = budget.tolerance * (length if budget.relative else 1.0)
        kept, w = brute_komp(kernel, D, w, tolerance, budget.size or 10**9)
        D = D[kept]
    return D, w


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", [G, Laplace(1.0), 2.0 * Matern32(0.5)], ids=repr)
@pytest.mark.parametrize(
    "budget",
    [KOMP(0.05), KOMP(0.3), KOMP(0.3, relative=True), KOMP(0.0, 6), KOMP(0.05, 5)],
    ids=repr,
)
def test_komp_is_brute_force_komp(kernel, budget, seed):
    X, y = events(np.random.default_rng(seed), 30)
    model = StreamingRegressor(kernel, step=0.2, decay=0.1, budget=budget).partial_fit(X, y)
    D, w = brute_stream(kernel, budget, X, y, 0.2, 0.1)
    assert_same_function(model, D, w, 1e-6)
    assert 0 < len(D) < 30


# the tolerance, measured in the kernel's space without its nugget


def random_setting(rng):
    kernels = [Gaussian, Laplace, Matern32, Matern52]
    kernel = kernels[rng.integers(4)](10.0 ** rng.uniform(-1.0, 0.7))
    losses = [Squared(), Absolute(), Huber(0.5), Quantile(0.8)]
    size = None if rng.uniform() < 0.7 else int(rng.integers(2, 10))
    budget = KOMP(10.0 ** rng.uniform(-3.0, 0.0), size, relative=bool(rng.integers(2)))
    # 2·step·k(x, x) < 1, so that no step is held down
    step, decay = 10.0 ** rng.uniform(-2.0, -0.62), float(rng.choice([0.0, 0.5]))
    kernel = rng.uniform() * kernel + rng.uniform() * Gaussian(1.0)
    return kernel, losses[rng.integers(4)], budget, step, decay


def weights_on(place, function, n):
    w = np.zeros(n)
    w[[place[c.tobytes()] for c in function.centers]] = function.weights
    return w


def compressions(seed, n=25):
    """‖f̃ - f‖/tolerance at every event of a random stream, 0 where atoms went for the size."""
    rng = np.random.default_rng(seed)
    kernel, loss, budget, step, decay = random_setting(rng)
    X, y = events(rng, n, int(rng.integers(1, 4)))
    model = StreamingRegressor(kernel, loss, step=step, decay=decay, budget=budget)
    K, place, w, excess = kernel(X), {x.tobytes(): i for i, x in enumerate(X)}, np.zeros(n), 0
    for t in range(n):
        beta = -step * loss.slope(y[t : t + 1], np.array([K[t] @ w]))[0]
        before = (1.0 - step * decay) * w
        before[t] += beta
        model.learn_one(X[t], y[t])
        w, status = weights_on(place, model.function_, n), model.status_
        tolerance = budget.tolerance * (abs(beta) * np.sqrt(K[t, t]) if budget.relative else 1.0)
        distance = np.sqrt(max((before - w) @ K @ (before - w), 0.0))
        # a step of length 0 costs nothing but rounding
        yield 0.0 if status.excess > excess else distance / max(tolerance, 1e-7)
        excess = status.excess
        assert status.atoms <= (budget.size or n)


@pytest.mark.parametrize("block", range(5))
def test_a_compression_never_moves_the_function_by_more_than_its_tolerance(block):
    ratios = [list(compressions(seed)) for seed in range(100 * block, 100 * (block + 1))]
    assert np.max(ratios) <= 1.0 + 1e-6
    assert np.max(ratios) > 0.9, "no compression came near its tolerance"


def test_the_status_tells_what_compressions_cost(rng):
    X, y = events(rng, 300)
    tight = StreamingRegressor(G, step=0.2, budget=KOMP(0.05)).partial_fit(X, y).status_
    assert 0.0 < tight.largest_compression <= 0.05
    assert tight.largest_compression <= tight.compression <= 300 * 0.05
    assert tight.excess == 0


def test_the_size_wins_over_the_tolerance_and_what_it_costs_more_is_counted(rng):
    X, y = events(rng, 300)
    model = StreamingRegressor(Gaussian(0.1), step=0.3, budget=KOMP(1e-6, 7))
    model.partial_fit(X, y)
    assert model.n_atoms_ == 7
    assert 0 < model.status_.excess <= 300 - 7
    assert model.status_.largest_compression > 1e-6


def test_no_tolerance_and_no_size_keep_every_distinct_point(rng):
    X, y = events(rng, 50)
    free = StreamingRegressor(Gaussian(0.3), step=0.1, budget=None).partial_fit(X, y)
    exact = StreamingRegressor(Gaussian(0.3), step=0.1, budget=KOMP(0.0)).partial_fit(X, y)
    assert exact.n_atoms_ == 50
    np.testing.assert_allclose(exact.predict(X), free.predict(X), atol=1e-12)


DICTIONARIES = [Unlimited(), Oldest(30), Smallest(30), KOMP(0.0), KOMP(1e-4), KOMP(0.0, 30),
                Nystroem(30)]  # fmt: skip


@pytest.mark.parametrize("budget", DICTIONARIES, ids=repr)
def test_repeated_points_do_not_pile_up(budget, rng):
    places, y = rng.uniform(size=(8, 2)), rng.normal(size=400)
    model = StreamingRegressor(G, step=0.2, budget=budget)
    model.partial_fit(places[rng.integers(8, size=400)], y)
    assert model.n_atoms_ <= 8
    assert len(np.unique(model.dictionary_, axis=0)) == model.n_atoms_


@pytest.mark.parametrize(
    "budget", [KOMP(0.0, 30), KOMP(0.2, relative=True, size=60), Nystroem(20)], ids=repr
)
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(0.5), 3.0 * Matern32(2.0)], ids=repr)
def test_the_inverse_stays_the_inverse_after_thousands_of_changes(kernel, budget, rng):
    X, y = events(rng, 3500)
    model = StreamingRegressor(kernel, step=0.2, budget=budget).partial_fit(X, y)
    n = model.n_atoms_
    P, K = model.state_[0]["matrices"][0, :n, :n], gram(kernel, model.dictionary_)
    np.testing.assert_allclose(P @ K, np.eye(n), atol=1e-6)


def test_the_dictionary_of_a_tolerance_does_not_grow_with_the_stream(rng):
    X, y = events(rng, 20_000, 1)
    model = StreamingRegressor(Gaussian(0.2), step=0.1, budget=KOMP(0.02))
    early = model.partial_fit(X[:5000], y[:5000]).n_atoms_
    late = model.partial_fit(X[5000:], y[5000:]).n_atoms_
    assert late <= early + 8


def test_memory_stays_as_it_is_over_two_hundred_thousand_events(rng):
    X, y = events(rng, 200_000, 1)
    model = StreamingRegressor(Gaussian(0.2), step=0.1, budget=KOMP(1e-3, 50))
    shapes = []
    for part in np.array_split(np.arange(200_000), 4):
        model.partial_fit(X[part], y[part])
        shapes.append({name: array.shape for name, array in model.state_[0].items()})
    assert shapes[0] == shapes[-1]
    assert sum(array.nbytes for array in model.state_[0].values()) < 100_000
    assert model.n_atoms_ <= 50


# Oldest, Smallest and Forgetron against their textbooks


def textbook_forgetting(budget, kernel, X, y, step, decay):
    """A stream of squared losses; an atom is [point, weight, event]."""
    atoms = []
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        z = sum(w * kernel(x[None], c[None])[0, 0] for c, w, _ in atoms)
        atoms = [[c, (1.0 - step * decay) * w, born] for c, w, born in atoms]
        atoms.append([x, -step * 2.0 * (z - target), t])
        if len(atoms) > budget.size:
            size = abs if isinstance(budget, Smallest) else None
            loser = min(atoms, key=lambda atom: size(atom[1]) if size else atom[2])
            atoms = [atom for atom in atoms if atom is not loser]
    return [c for c, *_ in atoms], [w for _, w, _ in atoms]


@pytest.mark.parametrize("decay", [0.0, 0.4])
@pytest.mark.parametrize("budget", [Oldest(1), Oldest(10), Smallest(1), Smallest(10)], ids=repr)
def test_the_oldest_or_the_smallest_goes(budget, decay, rng):
    X, y = events(rng, 60)
    model = StreamingRegressor(G, step=0.2, decay=decay, budget=budget).partial_fit(X, y)
    assert_same_function(model, *textbook_forgetting(budget, G, X, y, 0.2, decay), 1e-12)
    assert model.n_atoms_ == budget.size


def test_a_point_that_comes_again_is_young_again():
    X = np.array([[0.0], [5.0], [0.0], [9.0]])
    model = StreamingRegressor(G, step=0.1, budget=Oldest(2)).partial_fit(X, np.ones(4))
    assert sorted(model.dictionary_.ravel()) == [0.0, 9.0]


def textbook_forgetron(size, kernel, loss, X, y, step):
    """Dekel, Shalev-Shwartz and Singer's rule; weights in units of the step."""
    D, w, lost, mistakes = np.zeros((0, X.shape[1])), np.zeros(0), 0.0, 0
    for x, sign in zip(X, y, strict=True):
        z = step * float(kernel(x[None], D)[0] @ w) if len(D) else 0.0
        slope = loss.slope(np.array([sign]), np.array([z]))[0]
        if slope == 0.0:
            continue
        D, w, mistakes = np.vstack([D, x]), np.append(w, -slope), mistakes + 1
        if len(D) > size:
            sigma, mu = abs(w[0]), np.sign(w[0]) * float(kernel(D[:1], D)[0] @ w)
            a, b, c = sigma**2 - 2.0 * sigma * mu, 2.0 * sigma, lost - 15.0 / 32.0 * mistakes
            # the largest φ of at most 1 with aφ² + bφ + c <= 0, where c < 0
            roots = np.roots([a, b, c])
            phi = 1.0 if a + b + c <= 0.0 else min(r.real for r in roots if r.real > 0.0)
            lost += (sigma * phi) ** 2 + 2.0 * sigma * phi * (1.0 - phi * mu)
            D, w = D[1:], phi * w[1:]
    return D, step * w


@pytest.mark.parametrize("step", [0.5, 1.0])
@pytest.mark.parametrize("loss", [Perceptron(), Hinge()], ids=repr)
def test_a_forgetron_is_the_textbook_forgetron(loss, step, rng):
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60) > 0.0, 1.0, -1.0)
    model = StreamingClassifier(G, loss, step=step, budget=Forgetron(12)).partial_fit(X, y)
    assert_same_function(model, *textbook_forgetron(12, G, loss, X, y, step), 1e-9)
    assert model.n_atoms_ == 12


# A fixed subspace, and features in the place of a dictionary


def textbook_nystroem(size, kernel, X, y, step):
    """The first points that are far enough from the others, then projections on them."""
    D, w = X[:1], np.zeros(1)
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        k = kernel(x[None], D)[0]
        beta, a = -step * 2.0 * (k @ w - target), np.linalg.solve(gram(kernel, D), k)
        s, own = kernel.diag(x[None])[0] * (1.0 + NUGGET) - k @ a, kernel.diag(x[None])[0]
        if t == 0:
            w[0] = beta
        elif len(D) < size and s > 1e-4 * own:
            D, w = np.vstack([D, x]), np.append(w, beta)
        else:
            w = w + beta * a
    return D, w


@pytest.mark.parametrize("size", [5, 500])
def test_a_fixed_subspace_is_its_textbook(size, rng):
    X, y = events(rng, 100)
    model = StreamingRegressor(G, step=0.1, budget=Nystroem(size)).partial_fit(X, y)
    D, w = textbook_nystroem(size, G, X, y, 0.1)
    assert_same_function(model, D, w, 1e-5)
    assert len(D) == 5 if size == 5 else 5 < len(D) < 100


def linear_descent(features, y, step, decay, blocks=1):
    """Weights after a pass of squared losses over rows of features, one block at a time."""
    w = np.zeros(features.shape[1])
    parts = np.split(np.arange(len(w)), blocks)
    for t, (phi, target) in enumerate(zip(features, y, strict=True)):
        g, part = 2.0 * (phi @ w - target), parts[t % blocks]
        w = (1.0 - step * decay) * w
        w[part] -= step * blocks * g * phi[part]
    return w


@pytest.mark.parametrize("kernel", [G, 2.0 * Laplace(1.0), Matern52(1.0) * Gaussian(3.0)], ids=repr)
def test_random_features_are_linear_descent_on_their_map(kernel, rng):
    X, y = events(rng)
    budget = RandomFourier(20, random_state=3)
    model = StreamingRegressor(kernel, step=0.05, decay=0.1, budget=budget).partial_fit(X, y)
    features = budget(kernel, X)
    w = linear_descent(features(X), y, 0.05, 0.1)
    np.testing.assert_allclose(model.predict(X + 1.0), features(X + 1.0) @ w, atol=1e-10)
    assert model.n_atoms_ == 40


def regenerated(budget, scale, X):
    """√(1/D)(cos ω·x, sin ω·x, …), ω from SplitMix64 and Box and Muller's rule."""
    D, d = budget.frequencies, X.shape[1]
    with np.errstate(over="ignore"):
        word = np.uint64(budget.seed) + np.arange(1, 2 * D * d + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    u, v = (((word >> np.uint64(11)).astype(float) + 0.5) / 2**53).reshape(-1, 2).T
    omega = (np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)).reshape(D, d) / scale
    angles = X @ omega.T
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(X), -1) / np.sqrt(D)


@pytest.mark.parametrize("budget", [DoublyStochastic(24, 8), DoublyStochastic(6, 6, 7)], ids=repr)
def test_regenerated_features_are_block_descent_on_their_map(budget, rng):
    X, y = events(rng)
    model = StreamingRegressor(G, step=0.05, decay=0.1, budget=budget).partial_fit(X, y)
    w = linear_descent(
        regenerated(budget, 0.7, X), y, 0.05, 0.1, budget.frequencies // budget.block
    )
    np.testing.assert_allclose(model.predict(X), regenerated(budget, 0.7, X) @ w, atol=1e-10)


def test_regenerated_features_stand_for_the_kernel_and_its_columns(rng):
    kernel, budget = 2.0 * Gaussian((0.5, 2.0), columns=(2, 0)), DoublyStochastic(4000, 4000)
    X, Z = np.array([[0.3, 9.0, -0.2]]), rng.normal(size=(200, 3))
    model = StreamingRegressor(kernel, step=0.05, budget=budget).partial_fit(X, [1.0])
    # after one event z = 2·step·y k(x, ·)
    np.testing.assert_allclose(model.predict(Z), 0.1 * kernel(Z, X)[:, 0], atol=0.1 * 2 * 0.06)


def test_regenerated_features_depend_on_their_seed_alone(rng):
    X, y = events(rng)
    models = [
        StreamingRegressor(G, budget=DoublyStochastic(16, 8, seed)).partial_fit(X, y)
        for seed in (0, 0, 1)
    ]
    a, b, other = (model.predict(X) for model in models)
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - other).max() > 1e-3


def test_regenerated_features_take_no_memory_but_their_weights(rng):
    nbytes = {}
    for d in (2, 200):
        X, y = events(rng, 10, d)
        model = StreamingRegressor(G, budget=DoublyStochastic(512, 32)).partial_fit(X, y)
        nbytes[d] = sum(array.nbytes for array in model.state_[0].values())
    assert nbytes[200] - nbytes[2] == 8 * 198  # one row of zeros
    assert nbytes[200] < 512 * 200 * 8


SIZED = [Oldest(7), Smallest(7), KOMP(0.0, 7), KOMP(0.1, 7, relative=True), Nystroem(7)]


@pytest.mark.parametrize("budget", SIZED, ids=repr)
def test_the_size_is_never_exceeded(budget, rng):
    X, y = events(rng, 100)
    model = StreamingRegressor(Gaussian(0.3), budget=budget)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
        assert model.n_atoms_ == len(model.dictionary_) <= 7
    assert np.isin(model.dictionary_.ravel(), X.ravel()).all()


# The door


def test_a_budget_is_known_by_its_name():
    assert {name: as_budget(name) for name in BUDGETS} == {n: b() for n, b in BUDGETS.items()}
    assert as_budget(None) == Unlimited()
    assert as_budget(KOMP(0.5, 3)) == KOMP(0.5, 3)


BAD = {
    "negative tolerance": (lambda: KOMP(-0.1), ValueError, "tolerance must be .*got -0.1"),
    "tolerance not a number": (lambda: KOMP(np.nan), ValueError, "tolerance must be .*got nan"),
    "tolerance in words": (lambda: KOMP("small"), TypeError, "tolerance must be .*got 'small'"),
    "KOMP of size 0": (lambda: KOMP(0.1, 0), ValueError, "size must be a whole number .*got 0"),
    "Oldest of size 0": (lambda: Oldest(0), ValueError, "size must be a whole number .*got 0"),
    "Smallest of half": (lambda: Smallest(2.5), ValueError, "size must be .*got 2.5"),
    "Forgetron of size -1": (lambda: Forgetron(-1), ValueError, "size must be .*got -1"),
    "relative in words": (lambda: KOMP(0.1, relative="yes"), TypeError, "relative must be True or"),
    "uneven blocks": (lambda: DoublyStochastic(10, 3), ValueError, "of block, got 10 and 3"),
    "negative seed": (lambda: DoublyStochastic(seed=-1), ValueError, "seed must be .*got -1"),
    "unknown name": (lambda: as_budget("all"), ValueError, "budget must be one of .*got 'all'"),
    "class for object": (lambda: as_budget(KOMP), TypeError, "budget must be .*got the class"),
    "number for budget": (lambda: as_budget(100), TypeError, "budget must be one of .*got 100"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_budget_gets_one_clear_sentence(case):
    call, error, pattern = BAD[case]
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert re.search(r"[.?!]\s", str(caught.value)) is None
    assert str(caught.value).endswith(".")


def test_budgets_that_do_not_go_with_a_kernel_say_so(rng):
    X, y = events(rng, 5)
    for kernel, budget, pattern in [
        (Matern32(1.0), DoublyStochastic(8, 8), "DoublyStochastic needs a Gaussian kernel, got"),
        (Linear(), RandomFourier(8), "kernel must be continuous and stationary"),
        (G, Nystroem(5, random_state=0), "random_state must be None .*, got 0"),
    ]:
        with pytest.raises(ValueError, match=pattern):
            StreamingRegressor(kernel, budget=budget).partial_fit(X, y)
