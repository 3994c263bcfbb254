"""Figures: `*_data` functions compute what they show, Displays draw it; needs matplotlib to draw.

The HTML report is in `hplus.display.page`.
"""

from hplus.display.check_plots import CalibrationDisplay, ResidualDisplay
from hplus.display.data.check_data import (
    CalibrationData,
    QuadratResiduals,
    RescaledTimes,
    calibration_data,
    residual_data,
)
from hplus.display.data.rate_data import (
    CurveData,
    MapData,
    RatioCurve,
    RatioMap,
    curve_data,
    map_data,
    ratio_data,
)
from hplus.display.rate_plots import IntensityCurveDisplay, IntensityMapDisplay, RateRatioDisplay
from hplus.display.spectrum_plots import ScaleSpectrumDisplay

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
    "ScaleSpectrumDisplay",
    "calibration_data",
    "curve_data",
    "map_data",
    "ratio_data",
    "residual_data",
]
