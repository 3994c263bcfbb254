"""
At which distances does Curry shoot more often than as a rookie?
================================================================

Stephen Curry's shots by distance from the hoop, in his first season, 2009-10, and in 2023-24. The
exposure is the number of games he played (80 and 74), so both rates are per game. Their ratio has
an uncertainty band: where it includes 1, the data show no clear change. The drop at zero is not a
change in play: in 2009, 106 shots were recorded at exactly the hoop, in 2023 only two.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Intensity, Interval, datasets
from hplus.display import RateRatioDisplay


def rate(season, games):
    distance = np.hypot(*datasets.curry(season).X.T)
    return Intensity(Interval(0, 35, unit="ft")).fit(distance[distance < 35, None], exposure=games)


first, later = rate(2009, games=80), rate(2023, games=74)
ratio = later / first
RateRatioDisplay.from_ratio(ratio)

# %%
# Expected shots per game in two regions, with a 90 % interval for their ratio.

for name, feet in {"near the hoop": Interval(0, 4), "beyond 23 feet": Interval(23, 35)}.items():
    low, high = ratio.count_ratio_interval(feet)
    print(
        f"{name}: {first.expected_count(feet):.1f} shots per game, then "
        f"{later.expected_count(feet):.1f}: {low:.1f} to {high:.1f} times as many"
    )
plt.show()
