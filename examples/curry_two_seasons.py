"""
From how far did he shoot more often than as a rookie?
======================================================

Stephen Curry's shots by distance from the hoop, in his first season, 2009-10, and in 2023-24. The
games that he played go in as exposure (80 and 74), so that both rates are per game. Their ratio
comes with a band: where it holds 1, the data do not say that anything changed. The fall at zero is
no change of play: in 2009, 106 shots were noted at exactly the hoop, in 2023 only two.
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
# Counts of regions, and what the ratio of them may be.

for name, feet in {"near the hoop": Interval(0, 4), "beyond 23 feet": Interval(23, 35)}.items():
    low, high = ratio.count_ratio_interval(feet)
    print(
        f"{name}: {first.expected_count(feet):.1f} shots a game, then "
        f"{later.expected_count(feet):.1f}: {low:.1f} to {high:.1f} times as many"
    )
plt.show()
