"""
Do major earthquakes happen more often now?
===========================================

The data are all earthquakes of magnitude 7 and above, 1965 to 2016. The model can also return a
constant rate; the band shows how much the data leave open.
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
# The expected number in the first and in the last year, with 90 % prediction intervals.

for year in (1965, 2016):
    region = Interval(year, year + 1)
    low, high = model.count_interval(region)
    print(f"{year}: {model.expected_count(region):.1f} expected, {low:.0f} to {high:.0f}")
plt.show()
