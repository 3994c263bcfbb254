"""A textbook implementation of SPPPOT with KOMP in NumPy, to compare the compiled one with."""

from __future__ import annotations

import numpy as np

from hplus.streaming.engine.atoms import AVERAGE, CURRENT, DRIFT
from hplus.streaming.engine.layout import EVENTS, SEEN
from hplus.streaming.engine.learner import Learner


class TextbookStream:
    """The log form of SPPPOT, continuing from the state of a running stream.

    Every event becomes an atom; then, with K over all atoms inverted again before each decision,
    the cheapest atom is projected out while the tolerance allows it.
    """

    def __init__(self, learner: Learner) -> None:
        n, state = learner.size, learner.state
        self.rule, self.kernel, self.constants = learner.rule, learner.kernel, learner.constants
        self.centers = state.centers[1:n].copy()
        self.functions = state.rows[[CURRENT, AVERAGE, DRIFT], :n].copy()
        self.at_nodes, self.gram = self._inner_products()
        self.events, self.seen = int(state.counts[EVENTS]), float(state.numbers[SEEN])

    def _inner_products(self) -> tuple[np.ndarray, np.ndarray]:
        """Gram matrices of atoms with nodes and among atoms; atom 0 is the mean over the nodes."""
        nodes, shares, kernel = self.constants.nodes, self.constants.shares, self.kernel
        at_nodes = np.vstack([shares @ kernel(nodes, nodes), kernel(self.centers, nodes)])
        first = at_nodes @ shares
        K = np.block([[first[:1, None], first[None, 1:]], [first[1:, None], kernel(self.centers)]])
        return at_nodes, K + self.rule.jitter * np.diag(np.diag(K))

    def learn(self, X: np.ndarray) -> None:
        for x in X:
            self.learn_one(x[None])

    def learn_one(self, x: np.ndarray) -> None:
        """Learn from one event, shape (1, d)."""
        at_nodes = self.kernel(x, self.constants.nodes)[0]
        k = np.append(at_nodes @ self.constants.shares, self.kernel(x, self.centers)[0])
        self.seen += 1.0
        eta = self.rule.step / np.sqrt(self.seen)
        if self.events % self.rule.refresh == 0:
            self.functions[2] = np.linalg.inv(self.gram) @ self._slopes()
        self.events += 1
        self.functions[0] -= eta * self.functions[2]
        self._append(x, k, at_nodes, eta)
        self._compress((self.rule.tolerance * (eta if self.rule.relative else 1.0)) ** 2)
        share = (1.0 + self.rule.averaging) / (self.seen + self.rule.averaging)
        self.functions[1] += share * (self.functions[0] - self.functions[1])

    def _slopes(self) -> np.ndarray:
        """∫f k(x_i, ·)/∫f for every atom."""
        f = self.constants.shares * np.exp(self.functions[0] @ self.at_nodes)
        return self.at_nodes @ f / f.sum()

    def _append(self, x: np.ndarray, k: np.ndarray, at_nodes: np.ndarray, weight: float) -> None:
        """Add an atom to the current function."""
        kxx = self.kernel.diag(x) * (1.0 + self.rule.jitter)
        self.gram = np.block([[self.gram, k[:, None]], [k[None], kxx[None]]])
        self.centers = np.vstack([self.centers, x])
        self.at_nodes = np.vstack([self.at_nodes, at_nodes])
        self.functions = np.column_stack([self.functions, [weight, 0.0, 0.0]])

    def _compress(self, most: float) -> None:
        """Remove atoms, except the first, while the squared distances stay below `most`."""
        spent = 0.0
        while True:
            P = np.linalg.inv(self.gram)
            costs = self.functions[0, 1:] ** 2 / np.diag(P)[1:]
            j = 1 + int(np.argmin(costs))
            if spent + costs[j - 1] > most:
                return
            spent += costs[j - 1]
            # w - P[:, j] w_j/P_jj
            self.functions -= np.outer(self.functions[:, j], P[:, j] / P[j, j])
            self._delete(j)

    def _delete(self, j: int) -> None:
        self.functions = np.delete(self.functions, j, axis=1)
        self.gram = np.delete(np.delete(self.gram, j, axis=0), j, axis=1)
        self.at_nodes = np.delete(self.at_nodes, j, axis=0)
        self.centers = np.delete(self.centers, j - 1, axis=0)

    def differs_from(self, learner: Learner) -> float:
        """The largest difference between weights; infinite if the atoms differ."""
        n, state = learner.size, learner.state
        ours, theirs = np.lexsort(state.centers[1:n].T), np.lexsort(self.centers.T)
        if not np.array_equal(state.centers[1:n][ours], self.centers[theirs]):
            return np.inf
        weights = state.rows[[CURRENT, AVERAGE], :n]
        order, other = np.append(0, 1 + ours), np.append(0, 1 + theirs)
        return float(np.abs(weights[:, order] - self.functions[:2, other]).max())
