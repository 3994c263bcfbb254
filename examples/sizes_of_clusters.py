"""
At which sizes do events cluster?
=================================

Shots on a court are not spread evenly. Is that a matter of the whole court, or of a few feet? The
spectrum of sizes divides the window into ever smaller cells, and shows how much the rates of
neighbouring cells of each size differ.
"""

import matplotlib.pyplot as plt

from hplus import Intensity, datasets
from hplus.display import ScaleSpectrumDisplay

shots = datasets.curry(season=2015)
model = Intensity(shots.window, model="tree").fit(shots.X)
ScaleSpectrumDisplay.from_estimator(model)

# %%
# The rate itself tells apart cells down to its resolution, which is never finer than the step that
# positions are rounded to.

print(f"cells down to {model.resolution_:.2g} ft")
print(model.positions_.words(shots.window.axis_units))
plt.show()
