"""Windows: where events can occur. Intervals, cycles, boxes, polygons, and their products."""

from hplus.windows.base import Bounds, Product, Window, check_window
from hplus.windows.boxes import Box, Cycle, Interval
from hplus.windows.polygons import Planar, Polygon, Polygons, overlapping

WINDOWS: tuple[type[Window], ...] = (Interval, Cycle, Box, Polygon, Polygons, Product)
"""Every window class."""

__all__ = [
    "WINDOWS", "Bounds", "Box", "Cycle", "Interval", "Planar", "Polygon", "Polygons", "Product",
    "Window", "check_window", "overlapping",
]  # fmt: skip
