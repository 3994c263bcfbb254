"""
How often did mining disasters happen, and how certain is that?
===============================================================

The data are the dates of 191 disasters in British coal mines, 1851 to 1962. The rate cannot be
negative, and its smoothness is learned from the dates. The band contains the rate with
probability 90 %.
"""

import matplotlib.pyplot as plt

from hplus import Intensity, Interval, datasets
from hplus.display import IntensityCurveDisplay

coal = datasets.coal()
model = Intensity(coal.window).fit(coal.X)
IntensityCurveDisplay.from_estimator(model, coal.X)

# %%
# The expected number of events in a period is the integral of the rate. Its prediction interval
# also includes the randomness of the count: even a known rate does not determine how many events
# there will be.

for years in (Interval(1851, 1891), Interval(1921, 1961)):
    low, high = model.count_interval(years)
    expected = model.expected_count(years)
    print(
        f"{years.low:.0f} to {years.high:.0f}: {expected:.0f} disasters expected, "
        f"90 % prediction interval {low:.0f} to {high:.0f}"
    )
plt.show()
