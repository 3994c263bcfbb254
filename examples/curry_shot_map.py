"""
Where does Stephen Curry shoot from?
====================================

The data are all 1,585 shots of the season 2015-16 from the half court, in feet from the hoop. The
kernel has a length scale of 8 feet; without a kernel, `Intensity(window)` learns it, which takes
about ten times as long. The exposure is 79 games, so the rate is per game.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Box, Intensity, Matern32, datasets
from hplus.display import IntensityMapDisplay

shots = datasets.curry(season=2015)
model = Intensity(shots.window, Matern32(8.0), penalty=0.5).fit(shots.X, exposure=79.0)
IntensityMapDisplay.from_estimator(model)

# %%
# Expected counts of disjoint regions add up.

rim = Box((-4, -4), (4, 4))
left, right = Box((-25, -5.25), (0, 41.75)), Box((0, -5.25), (25, 41.75))
print(f"near the rim: {model.expected_count(rim):.1f} shots per game")
print("left and right of the hoop:", np.round(model.expected_count([left, right]), 1))
print(f"on the whole half court: {model.expected_count(shots.window):.1f}")
plt.show()
