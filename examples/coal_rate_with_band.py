"""
How often did the mines explode, and how sure are we?
=====================================================

The dates of 191 disasters in British coal mines, 1851 to 1962. The rate of such events cannot be
negative; how fast it may change is learned from the dates. The band holds the rate with a
probability of 90 %.
"""

import matplotlib.pyplot as plt

from hplus import Intensity, Interval, datasets
from hplus.display import IntensityCurveDisplay

coal = datasets.coal()
model = Intensity(coal.window).fit(coal.X)
IntensityCurveDisplay.from_estimator(model, coal.X)

# %%
# The number of events that a stretch of time would bring is an integral of the rate. Its interval
# has chance in it as well: even a rate that was known would not say how many there will be.

for years in (Interval(1851, 1891), Interval(1921, 1961)):
    low, high = model.count_interval(years)
    print(
        f"{years.low:.0f} to {years.high:.0f}: {model.expected_count(years):.0f} disasters, "
        f"90 % of the time {low:.0f} to {high:.0f}"
    )
plt.show()
