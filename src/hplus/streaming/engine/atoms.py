"""The dictionary of atoms that the functions of a stream are made of; compiled.

With P = (K + nugget)⁻¹ over the atoms, the nearest function without atom j has the weights
w - P[:, j] w_j/P_jj and the squared distance w_j²/P_jj, and the squared distances of successive
removals add up [math, Eq. 5.3]. The nugget is part of the kernel, so that distances are never
underestimated. `rows` has numbers for each atom, `matrices` for each pair.
"""

from __future__ import annotations

from numba import njit

from hplus.kernels.compiled import NO_WRAPPERS, OPTIONS, inner

# rows: the weights of three functions; the diagonal of P, the event at which an atom was added, and
# its mean kernel with late events; then values for the current x, and scratch; and events counted
# on the nodes of a grid
CURRENT, AVERAGE, DRIFT, DIAGONAL, BORN, LATE = range(6)
KERNEL, BESIDE, PROJECTION, SCRATCH, DIRECTION, TOTAL = range(6, 12)
FUNCTIONS, KEPT, ROWS = 3, 6, 12
# matrices: P; the mean outer product of pseudo-gradients, and the preconditioner from it
INVERSE, SCATTER, CORRECTION = range(3)

summing = njit(**{**OPTIONS, **NO_WRAPPERS, "fastmath": {"reassoc", "contract", "nsz"}})
"""Sums may be reordered, for vector instructions; always in the same way on one machine."""


@summing
def dot(x, y, n):
    """Σ x_i y_i over the first n entries."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@summing
def multiply(A, n, x, out):
    """out = A x over the first n, four rows at a time."""
    i = 0
    while i + 4 <= n:
        a, b, c, d = A[i], A[i + 1], A[i + 2], A[i + 3]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            p += a[j] * x[j]
            q += b[j] * x[j]
            r += c[j] * x[j]
            s += d[j] * x[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = p, q, r, s
        i += 4
    while i < n:
        out[i] = dot(A[i], x, n)
        i += 1


@inner
def add_multiple(target, factor, x, n):
    """target += factor·x over the first n."""
    for i in range(n):
        target[i] += factor * x[i]


@inner
def scale(target, factor, n):
    """target *= factor over the first n."""
    for i in range(n):
        target[i] *= factor


@inner
def append(centers, rows, matrices, n, x, weight, event):
    """Add the n-th atom at x, with its weight in the current function and 0 in the others."""
    for c in range(len(x)):
        centers[n, c] = x[c]
    for f in range(FUNCTIONS):
        rows[f, n] = 0.0
    rows[CURRENT, n] = weight
    rows[BORN, n] = event
    for m in range(SCATTER, len(matrices)):
        for i in range(n):
            matrices[m, i, n] = 0.0
            matrices[m, n, i] = 0.0
        matrices[m, n, n] = m - SCATTER  # no scatter, and a first-order step


@inner
def extend_inverse(P, diagonal, n, a, s):
    """Extend P by the n-th atom; a = P k(x), and s is its squared distance from the others."""
    for i in range(n):
        row, factor = P[i], a[i] / s
        for j in range(n):
            row[j] += factor * a[j]
        row[n] = -factor
        P[n, i] = -factor
        diagonal[i] = row[i]
    P[n, n] = 1.0 / s
    diagonal[n] = P[n, n]


@inner
def project_out(rows, matrices, n, j):
    """Project every function on the atoms other than the j-th, and remove it from P."""
    P, p = matrices[INVERSE], rows[SCRATCH]
    pivot = P[j, j]
    for i in range(n):
        p[i] = P[j, i] / pivot
    p[j] = 0.0
    for f in range(FUNCTIONS):
        add_multiple(rows[f], -rows[f, j], p, n)
    for i in range(n):
        add_multiple(P[i], -p[i] * pivot, p, n)
        rows[DIAGONAL, i] = P[i, i]
    if len(matrices) > SCATTER:
        G, C = matrices[SCATTER], matrices[CORRECTION]
        for i in range(n):
            add_multiple(G[i], -G[i, j], p, n)
        for i in range(n):
            add_multiple(G[i], -p[i], G[j], n)
            add_multiple(C[i], -p[i], C[j], n)


@inner
def delete(centers, rows, matrices, at_nodes, n, j):
    """Replace the j-th of n atoms by the last."""
    last = n - 1
    for c in range(centers.shape[1]):
        centers[j, c] = centers[last, c]
    for f in range(KEPT):
        rows[f, j] = rows[f, last]
    for q in range(at_nodes.shape[1]):
        at_nodes[j, q] = at_nodes[last, q]
    for m in range(len(matrices)):
        A = matrices[m]
        for i in range(n):
            A[j, i] = A[last, i]
        for i in range(n):
            A[i, j] = A[i, last]


@inner
def same_point(centers, first, n, x, k, kxx):
    """`find`, unless the kernel shows that no atom is close to x."""
    close = 0
    for i in range(first, n):
        close += k[i] > 0.999999 * kxx
    return find(centers, first, n, x) if close > 0 else -1


@inner
def find(centers, first, n, x):
    """The index of the atom at x, or -1; atoms before `first` are not points."""
    for i in range(first, n):
        if centers[i, 0] == x[0]:
            same = True
            for c in range(1, len(x)):
                same = same and centers[i, c] == x[c]
            if same:
                return i
    return -1
