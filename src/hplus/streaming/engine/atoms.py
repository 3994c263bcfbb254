"""A dictionary of atoms under the functions of a stream; compiled.

With P = (K + nugget)⁻¹ over the atoms, the nearest function without atom j has the weights
w - P[:, j] w_j/P_jj, at the squared distance w_j²/P_jj, and the squared distances of removals one
after the other add up [math, Eq. 5.3]. The nugget is part of the kernel, so that distances are
never understated. `rows` hold numbers of each atom, `matrices` those of each pair.
"""

from __future__ import annotations

from numba import njit

from hplus.kernels.compiled import NO_WRAPPERS, OPTIONS, inner

# rows: the weights of three functions; the diagonal of P, the event at which an atom came, and the
# mean of the kernel between it and late events; then what is known of x, and scratch; and events
# counted on the nodes of a grid
CURRENT, AVERAGE, DRIFT, DIAGONAL, BORN, LATE = range(6)
KERNEL, BESIDE, PROJECTION, SCRATCH, DIRECTION, TOTAL = range(6, 12)
FUNCTIONS, KEPT, ROWS = 3, 6, 12
# matrices: P; the mean outer product of pseudo-gradients, and the preconditioner made from it
INVERSE, SCATTER, CORRECTION = range(3)

summing = njit(**{**OPTIONS, **NO_WRAPPERS, "fastmath": {"reassoc", "contract", "nsz"}})
"""Sums in any order, so that they use vector instructions; always the same on one machine."""


@summing
def dot(x, y, n):
    """Σ x_i y_i over the first n."""
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
def append(centers, rows, matrices, n, x, weight, event):
    """A new atom at x, the n-th, with its weight in the current function and 0 in the others."""
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
        matrices[m, n, n] = m - SCATTER  # no scatter, and a step of first order


@inner
def extend_inverse(P, diagonal, n, a, s):
    """P with an atom more, the n-th; a = P k(x), and s its squared distance from the others."""
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
    """Every function on the atoms but the j-th, and P without it."""
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
    """The last of n atoms takes the place of the j-th."""
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
    """`find`, after a look at the kernel: where no atom is close there is none at x."""
    close = 0
    for i in range(first, n):
        close += k[i] > 0.999999 * kxx
    return find(centers, first, n, x) if close > 0 else -1


@inner
def find(centers, first, n, x):
    """The atom at x, or -1; atoms before `first` are no points."""
    for i in range(first, n):
        if centers[i, 0] == x[0]:
            same = True
            for c in range(1, len(x)):
                same = same and centers[i, c] == x[c]
            if same:
                return i
    return -1
