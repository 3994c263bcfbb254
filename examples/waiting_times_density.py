"""
How long until the next disaster?
=================================

The density of the times between consecutive disasters in British coal mines, in days. It is zero
below 0, where its window begins, and integrates exactly to one.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Density, Interval, datasets

days = 365.25 * np.diff(datasets.coal().X[:, 0])[:, None]
model = Density(Interval(0, 2500, unit="day")).fit(days)

t = np.linspace(0, 1500, 600)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.hist(
    days[:, 0], bins=np.arange(0, 1501, 50), density=True, color="#c9d3df", label="waiting times"
)
ax.plot(t, model.predict(t[:, None]), color="#0072b2", lw=2.5, label="density")
ax.set(xlabel="days between disasters", ylabel="probability per day", xlim=(0, 1500))
ax.legend(frameon=False)

# %%
# Probabilities are integrals of the density.

month, year = Interval(0, 30), Interval(0, 365)
print(f"within a month: {model.probability(month):.0%}, a year: {model.probability(year):.0%}")
print(f"at any time: {model.probability(model.window):.6f}")
plt.show()
