"""Geometry for windows: edges, quadrature rules, rings of vertices, triangles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from hplus._checks import Bools, Floats, as_floats, check_memory, frozen_array

Rule = tuple[Floats, Floats]
"""Nodes (q, d) and weights (q,) of a quadrature: Σ_q weights[q] f(nodes[q]) stands for ∫_W f."""

Shape = Any
"""A shapely geometry: shapely has no type stubs."""

Rings = list[tuple[Floats, int]]
"""Rings of vertices (n, 2) in either direction, each with 1 for a border or -1 for a hole."""

MIN_RING_WIDTH = 1e-12
"""Rings narrower than this fraction of their largest coordinates are lines up to rounding."""

MAX_OVERLAP = 1e-6
"""Polygons that share at most this fraction of their area only touch: borders are rounded."""


def check_edges(
    low: object, high: object, axes: int, *, infinite: bool = False
) -> tuple[Floats, Floats]:
    """`low` and `high` as arrays with `axes` dimensions; an error unless finite and in order.

    With `infinite`, ends may be infinite.
    """
    a, b = as_floats("low", low), as_floats("high", high)
    rule = "one finite number for each axis" if axes else "a finite number"
    rule = "a number" if infinite else rule
    for name, edge, given in (("low", a, low), ("high", b, high)):
        known = ~np.isnan(edge) if infinite else np.isfinite(edge)
        if edge.ndim != axes or edge.size == 0 or not known.all():
            raise ValueError(f"{name} must be {rule}, got {given!r}.")
    if a.shape != b.shape or not np.all(a < b):
        raise ValueError(f"low must be below high on every axis, got {low!r} and {high!r}.")
    return a, b


def product_of_units(units: tuple[str, ...]) -> str:
    """The product of the units of all axes, for example "km² day"; "" without units."""
    powers = Counter(unit for unit in units if unit)
    return " ".join(_power(unit, n, alone=len(powers) == 1) for unit, n in powers.items())


def _power(unit: str, n: int, *, alone: bool) -> str:
    """unitⁿ, in parentheses where a unit like "m/s" would be misread."""
    plain = (alone and n == 1) or not set(unit) & set(" /*·^²³")
    exponent = str(n).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")) if n > 1 else ""
    return (unit if plain else f"({unit})") + exponent


def gauss(order: int, power: int = 0) -> Rule:
    """∫₀¹ s^power f(s) ds = Σ_q w_q f(s_q), exact to degree 2·order - 1; shapes (q, 1), (q,)."""
    from scipy.special import roots_jacobi  # here, since few windows need SciPy

    u, w = roots_jacobi(order, 0, power)
    return (1.0 + u[:, None]) / 2.0, w / 2.0 ** (power + 1)


def product_points(axes: Iterable[Floats]) -> Floats:
    """All points with these coordinates on each axis, the last axis fastest, shape (q, d)."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return points.reshape(-1, points.shape[-1])


def cross(left: Rule, right: Rule) -> Rule:
    """The rule of a product: nodes (x_p, z_q), weights v_p w_q, the right index fastest."""
    (X, v), (Z, w) = left, right
    check_nodes(len(v) * len(w), X.shape[1] + Z.shape[1])
    nodes = np.hstack([np.repeat(X, len(w), axis=0), np.tile(Z, (len(v), 1))])
    return nodes, np.outer(v, w).ravel()


def check_nodes(count: int, dimension: int) -> None:
    """An error if a rule of `count` nodes would not fit in memory."""
    check_memory(8.0 * count * (dimension + 1), f"A quadrature of {count} nodes", "lower the order")


def collapse(triangles: Floats, s: Floats, t: Floats) -> Floats:
    """a + s((1 - t)(b - a) + t(c - a)), the unit square folded on a triangle (a, b, c).

    Shapes (..., 3, 2), (...,), (...,) to (..., 2); the area element is 2·area·s ds dt.
    """
    a, b, c = np.moveaxis(triangles, -2, 0)
    s, t = s[..., None], t[..., None]
    return a + s * ((1.0 - t) * (b - a) + t * (c - a))


def triangle_rule(triangles: Floats, order: int) -> Rule:
    """Nodes (m·order², 2) and weights on triangles (m, 3, 2), exact to degree 2·order - 1.

    ∫_T f = 2|T| ∫₀¹ s ∫₀¹ f(s, t) dt ds on every triangle T.
    """
    S, w = cross(gauss(order, power=1), gauss(order))
    check_nodes(len(triangles) * len(w), 2)
    nodes = collapse(triangles[:, None], S[:, 0], S[:, 1])
    return nodes.reshape(-1, 2), np.outer(areas(triangles), 2.0 * w).ravel()


def triangle_sample(triangles: Floats, n: int, rng: np.random.RandomState) -> Floats:
    """n uniform points on triangles (m, 3, 2): draw a triangle by area, then a point in it."""
    share = areas(triangles) / areas(triangles).sum()
    chosen = rng.choice(len(share), n, p=share)
    # s = √u, because the points with s <= r make up r² of a triangle's area
    s, t = np.sqrt(rng.random_sample(n)), rng.random_sample(n)
    return collapse(triangles[chosen], s, t)


def areas(triangles: Floats) -> Floats:
    """|(b - a) x (c - a)|/2 of each triangle (a, b, c), shape (m, 3, 2) to (m,)."""
    p, q = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    return 0.5 * np.abs(p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0])


def triangulate(shape: Shape) -> Floats:
    """Triangles that tile a shapely polygon, shape (m, 3, 2)."""
    shapely = load_shapely()
    parts = shapely.get_parts(shapely.constrained_delaunay_triangles(shape))
    triangles = shapely.get_coordinates(parts).reshape(-1, 4, 2)[:, :3]
    # a triangle no larger than the rounding errors of its corners may stick out of the polygon
    reach, sides = np.abs(triangles).max(axis=(0, 1)), np.ptp(triangles, axis=1)
    rounding = 4.0 * np.finfo(float).eps * (sides @ reach[::-1])
    return triangles[areas(triangles) > rounding]


def check_ring(name: str, vertices: object) -> Floats:
    """A read-only array of vertices, shape (n, 2), the first not repeated at the end."""
    ring = frozen_array(name, vertices)
    if ring.ndim != 2 or ring.shape[1] != 2:
        raise ValueError(f"{name} must have one vertex per row, shape (n, 2), got {ring.shape}.")
    ring = ring[:-1] if np.array_equal(ring[:1], ring[1:][-1:]) else ring
    if len(ring) < 3:
        raise ValueError(f"{name} must have at least 3 vertices, got {len(ring)}.")
    spread = (ring - ring[0]) / np.maximum(np.abs(ring).max(axis=0), np.finfo(float).tiny)
    if np.linalg.matrix_rank(spread, tol=MIN_RING_WIDTH) < 2:
        raise ValueError(f"{name} must enclose an area, got {len(ring)} vertices on one line.")
    return ring


def oriented(ring: Floats, role: int) -> Floats:
    """A ring (n, 2), anticlockwise for role 1 and clockwise for role -1."""
    x, y = (ring - ring[0]).T
    # twice the signed area is Σ x_i y_{i+1} - x_{i+1} y_i, where x_0 = y_0 = 0
    area = x[:-1] @ y[1:] - y[:-1] @ x[1:]
    return ring if role * area > 0.0 else ring[::-1]


def check_holes(holes: object) -> tuple[Floats, ...]:
    """Every hole as a ring."""
    if not isinstance(holes, Iterable):
        raise TypeError(f"holes must be a sequence of rings, got {holes!r}.")
    return tuple(check_ring(f"hole {i}", hole) for i, hole in enumerate(holes))


def build_shape(polygons: list[tuple[Floats, tuple[Floats, ...]]]) -> Shape:
    """The shapely shape of outer rings with their holes, prepared for many point queries.

    An error if rings of one polygon cross.
    """
    shapely = load_shapely()
    shapes = [shapely.Polygon(outer, holes) for outer, holes in polygons]
    for shape in shapes:
        _check_valid(shape)
    # a point is inside if a ray from it meets an odd number of edges, so parts may touch
    shape = shapes[0] if len(shapes) == 1 else shapely.MultiPolygon(shapes)
    shapely.prepare(shape)
    return shape


def _check_valid(shape: Shape) -> None:
    shapely = load_shapely()
    if not shapely.is_valid(shape):
        reason, _, place = shapely.is_valid_reason(shape).lower().rstrip("]").partition("[")
        raise ValueError(
            f"outer and holes must be rings that do not cross, the holes apart and inside outer, "
            f"got {reason.replace('shell', 'outer')} near ({', '.join(place.split())}): correct "
            f"the rings there."
        )


def check_apart(shapes: list[Shape]) -> None:
    """An error if two of these shapely polygons have more than a border in common."""
    shapely = load_shapely()
    tree = shapely.STRtree(shapes)
    for i, j in sorted(map(tuple, tree.query(shapes, predicate="intersects").T.tolist())):
        if i < j:
            common = shapely.intersection(shapes[i], shapes[j]).area
            if common > MAX_OVERLAP * min(shapes[i].area, shapes[j].area):
                raise ValueError(
                    f"parts must not overlap, got an area of {common:.6g} in both part {i} and "
                    f"part {j}: merge them or cut one."
                )


def share_area(whole: Shape, shapes: Shape) -> Bools:
    """Which shapely polygons (n,) have more than a border in common with another one?"""
    shapely = load_shapely()
    found: Bools = shapely.covers(whole, shapes)
    cut = np.flatnonzero(shapely.intersects(whole, shapes) & ~found)
    common = shapely.area(shapely.intersection(whole, shapes[cut]))
    found[cut] = common > MAX_OVERLAP * np.minimum(shapely.area(shapes[cut]), whole.area)
    return found


def common_rings(shapes: list[Shape], tree: Shape) -> Rings:
    """The rings around what shapely polygons have in common with those of a tree."""
    shapely = load_shapely()
    i, j = tree.query(shapes)
    mine, others = np.take(shapes, i), tree.geometries[j]
    met = shapely.intersects(others, mine)
    mine, others = mine[met], others[met]
    inside, around = shapely.covers(others, mine), shapely.covers(mine, others)
    cross = ~(inside | around)
    cut = shapely.get_parts(shapely.intersection(mine[cross], others[cross]))
    # borders that touch have only lines and points in common
    areas = [part for part in cut if part.geom_type == "Polygon" and not part.is_empty]
    found = [*mine[inside], *others[around & ~inside], *areas]
    rings = [(polygon.exterior, 1) for polygon in found]
    rings += [(hole, -1) for polygon in found for hole in polygon.interiors]
    return [(shapely.get_coordinates(ring)[:-1], role) for ring, role in rings]


def covers(shape: Shape, X: Floats) -> Bools:
    """Does X[i] lie in the shapely polygon or on its boundary? Shape (n, 2) to (n,)."""
    inside: Bools = load_shapely().intersects_xy(shape, X)
    return inside


def load_shapely() -> ModuleType:
    """The shapely module, from the extra `geo`."""
    try:
        import shapely
    except ImportError:
        raise ImportError("Polygon needs shapely: pip install 'hplus[geo]'.") from None
    return shapely
