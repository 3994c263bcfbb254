"""
At what hour are cars stolen? A stream, month by month
======================================================

Thefts arrive month by month. The model sees each month once, stores about twenty weights, and can
be used at any moment. The exposure is the number of days in the month, so the rate is per day. The
recorded time of a theft is half-way between when the car was last seen and when it was found
missing: the peak after midnight reflects the middle of the night, not an observed time. The
periodic kernel joins midnight to midnight.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Interval, Periodic, StreamingIntensity, datasets

hours = datasets.thefts().X[:, 2]
days_of_month = 1461 / 48
month = (hours // (24 * days_of_month)).astype(int)

day = Interval(0, 24, unit="hour")
live = StreamingIntensity(day, Periodic(24.0, 0.5), method="refit")
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
clock = np.linspace(0, 24, 241)[:, None]
for m in range(48):
    live = live.partial_fit(hours[month == m][:, None] % 24, exposure=days_of_month)
    if m in (0, 5, 47):
        label = f"after {m + 1} month{'s' * (m > 0)}"
        ax.plot(clock, live.predict(clock), color=plt.cm.Blues((m + 20) / 67), lw=2, label=label)
ax.set(xlabel="hour of the day", ylabel="thefts per hour", xlim=(0, 24), ylim=(0, None))
ax.set_xticks(range(0, 25, 3))
ax.legend(frameon=False)

print(f"{live.n_atoms_} weights after {len(hours):,} thefts")
print(f"{live.expected_count(Interval(0, 6)):.1f} thefts per day between midnight and six")
plt.show()
