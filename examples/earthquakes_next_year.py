"""
How many earthquakes in the months to come?
===========================================

A forecast from all earthquakes of magnitude 5.5 and above from 1965 to 2015, and what then
happened in 2016. Months vary more than Poisson counts do, since large earthquakes have aftershocks;
the intervals include that.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Forecast, Interval, datasets

quakes = datasets.earthquakes()
days = quakes.X[:, 2]
known, month = Interval(0, 18_627, unit="day"), 365.25 / 12

model = Forecast(known, horizon=366).fit(days[days < known.high])
months = [Interval(known.high + i * month, known.high + (i + 1) * month) for i in range(12)]
low, high = model.count_interval(months)
counts = [np.sum((days >= m.low) & (days < m.high)) for m in months]

figure, ax = plt.subplots()
ax.fill_between(range(1, 13), low, high, step="mid", alpha=0.3, label="90 % interval")
ax.step(range(1, 13), model.expected_count(months), where="mid", label="forecast")
ax.plot(range(1, 13), counts, "o", label="what happened")
ax.set(xlabel="month of 2016", ylabel="earthquakes", ylim=(0, None))
ax.legend()

# %%
# What was learned: which cycles predict later cycles, and how much more counts vary than chance.

for cycle in model.cycles_:
    print(f"{cycle.name}: {cycle.reason}")
print(model.dispersion_)
plt.show()
