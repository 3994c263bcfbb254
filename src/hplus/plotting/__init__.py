"""Plotting: `*_data` functions compute, Display objects draw; needs matplotlib to draw."""

from hplus.plotting.calibration import CalibrationData, CalibrationDisplay, calibration_data
from hplus.plotting.curve import CurveData, IntensityCurveDisplay, curve_data
from hplus.plotting.maps import IntensityMapDisplay, MapData, map_data
from hplus.plotting.ratio import RateRatioDisplay, RatioCurve, RatioMap, ratio_data
from hplus.plotting.residuals import (
    QuadratResiduals,
    RescaledTimes,
    ResidualDisplay,
    residual_data,
)

__all__ = [
    "CalibrationData",
    "CalibrationDisplay",
    "CurveData",
    "IntensityCurveDisplay",
    "IntensityMapDisplay",
    "MapData",
    "QuadratResiduals",
    "RateRatioDisplay",
    "RatioCurve",
    "RatioMap",
    "RescaledTimes",
    "ResidualDisplay",
    "calibration_data",
    "curve_data",
    "map_data",
    "ratio_data",
    "residual_data",
]
