"""
How many cars are stolen in a bad week?
=======================================

The data are weekly numbers of motor vehicle thefts in New York City, 2014 to 2017. Three quantiles
are learned together. Each is the one below plus a sum of squares, so they cannot cross; the lowest
is itself a sum of squares, so none is negative.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Constant, Full, Gaussian, QuantilesRegressor, datasets

weeks = np.bincount((datasets.thefts().X[:, 2] // 168).astype(int))[:208]
year = 2014 + np.arange(0.5, 208)[:, None] * 7 / 365.25

kernel = Gaussian(0.4) + Constant(1.0)
model = QuantilesRegressor((0.1, 0.5, 0.9), positive=True, kernel=kernel, cone=Full(1e-4, 1e-4))
low, median, high = model.fit(year, weeks).predict(year).T

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.scatter(year[:, 0], weeks, s=12, color="#8c8c8c", label="thefts per week")
ax.fill_between(year[:, 0], low, high, color="#0072b2", alpha=0.2, lw=0, label="8 of 10 weeks")
ax.plot(year[:, 0], median, color="#0072b2", lw=2.5, label="median")
ax.set(ylabel="thefts per week", xticks=range(2014, 2019), ylim=(0, None))
ax.legend(frameon=False, ncols=3, loc="lower left")

# %%
# The share of weeks below each quantile:

for level, line in zip(model.levels_, (low, median, high), strict=True):
    print(f"{np.mean(weeks < line):.0%} of the weeks lie below the {level:.0%} quantile")
plt.show()
