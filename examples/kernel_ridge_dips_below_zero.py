"""
Kernel ridge regression predicts negative customer counts
=========================================================

It does so at night. Customers are counted every hour in a shop that is open from 9 to 19. Kernel
ridge regression and the sum of squares are given the same data and the same kernel, and both
choose their penalties by cross-validation.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from hplus import Gaussian, KernelRegressor, SoSRegressor

hours = np.arange(0.5, 72.0)
noon, evening = (np.exp(-0.5 * ((hours % 24 - at) / 1.4) ** 2) for at in (12.0, 17.0))
is_open = (hours % 24 > 9) & (hours % 24 < 19)
customers = np.random.default_rng(0).poisson(np.where(is_open, 12 + 10 * noon + 16 * evening, 0.0))

X, kernel = hours[:, None], Gaussian(2.5)
folds, penalties = KFold(5, shuffle=True, random_state=0), {"penalty": np.logspace(-5, 0, 11)}
ridge = GridSearchCV(KernelRegressor(kernel), penalties, cv=folds).fit(X, customers)
ours = SoSRegressor(kernel, cone="auto").fit(X, customers)

# %%
# Predictions over the three days:

t = np.linspace(0, 72, 2881)
of_ridge, of_ours = ridge.predict(t[:, None]), ours.predict(t[:, None])
below = of_ridge < 0
print(
    f"Kernel ridge is below zero {below.mean():.0%} of the time, down to {of_ridge.min():.1f} "
    f"customers per hour; the sum of squares is never below {of_ours.min():.1g}."
)

# %%
# A negative count is not only implausible: its logarithm, its integral over the night and a staff
# plan based on it are wrong, too.

BLUE, RED = "#0072b2", "#d55e00"
style = {"font.size": 12, "axes.titlesize": 14, "axes.titleweight": "bold", "lines.linewidth": 2.4}
with plt.rc_context(style | {"axes.spines.top": False, "axes.spines.right": False}):
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for ax, f, colour in zip(panels, (of_ridge, of_ours), (RED, BLUE), strict=True):
        ax.axhline(0.0, color="black", lw=1.0, zorder=1)
        ax.scatter(hours, customers, s=16, color="#8c8c8c", zorder=2)
        ax.plot(t, f, color=colour, zorder=3)
        ax.set(xlabel="hour", xlim=(0, 72), xticks=np.arange(0, 73, 12))
    panels[0].fill_between(t, of_ridge, 0.0, where=below, color=RED, alpha=0.6, lw=0)
    shade = panels[0].get_xaxis_transform()
    panels[0].fill_between(t, 0, 1, where=below, color=RED, alpha=0.15, lw=0, transform=shade)
    panels[0].set_title(f"kernel ridge: below zero {below.mean():.0%} of the time", color=RED)
    panels[1].set_title("hplus: never below zero", color=BLUE)
    panels[0].set_ylabel("customers per hour")

# %%
# Given a file name as an argument, the script saves the figure for the README instead.

if sys.argv[1:]:
    figure.savefig(sys.argv[1], dpi=160)
else:
    plt.show()
