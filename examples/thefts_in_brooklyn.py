"""
Where in Brooklyn are cars stolen?
==================================

The data are the car thefts of 2017 within a rough outline of the borough. Degrees are not
distances, so coordinates are converted to kilometres first. The rate does not leak across the
boundary: it integrates to the number of events inside.
"""

import json
import tempfile

import matplotlib.pyplot as plt
import numpy as np

from hplus import Intensity, Matern32, Polygon, datasets
from hplus.display import IntensityMapDisplay


def kilometres(lonlat):
    """Distances east and north of Prospect Park, on a scale where the earth is nearly flat."""
    east = 111.32 * np.cos(np.radians(40.66))
    return (np.asarray(lonlat) - (-73.969, 40.66)) * (east, 111.05)


outlines = json.loads(datasets.copy("nyc_boroughs", tempfile.mkdtemp()).read_text())
outline = next(part for part in outlines["features"] if part["properties"]["name"] == "Brooklyn")
brooklyn = Polygon(kilometres(outline["geometry"]["coordinates"][0]), unit="km")

thefts = datasets.thefts().X
places = kilometres(thefts[thefts[:, 2] >= 24 * (3 * 365 + 1), :2])  # 2016 was a leap year
places = places[brooklyn.contains(places)]

model = Intensity(brooklyn, Matern32(3.0), penalty=0.5).fit(places)
IntensityMapDisplay.from_estimator(model)

# %%
# The total expected number, and where the rate is highest.

(east, north), rate = model.peak()
print(f"{model.expected_count(brooklyn):.0f} thefts expected, {len(places)} counted")
print(
    f"highest rate: {rate:.0f} per square kilometre, {east:.1f} km east and "
    f"{north:.1f} km north of Prospect Park"
)
plt.show()
