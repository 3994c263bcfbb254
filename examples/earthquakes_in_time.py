"""
Do great earthquakes come more often now?
=========================================

All earthquakes of magnitude 7 and more, 1965 to 2016. A constant rate is one of the answers that
the model can give; the band says how far the data leave the question open.
"""

import matplotlib.pyplot as plt

from hplus import Intensity, Interval, datasets
from hplus.display import IntensityCurveDisplay

quakes = datasets.earthquakes()
great = quakes.X[quakes.y >= 7.0]
years = 1965 + great[:, 2:] / 365.25

model = Intensity(Interval(1965, 2017, unit="year")).fit(years)
IntensityCurveDisplay.from_estimator(model, years)

# %%
# What to expect of a year at either end, and 90 % of the counts that chance would make of it.

for year in (1965, 2016):
    region = Interval(year, year + 1)
    low, high = model.count_interval(region)
    print(f"{year}: {model.expected_count(region):.1f} expected, {low:.0f} to {high:.0f}")
plt.show()
