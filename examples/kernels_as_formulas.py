"""
Kernels as formulas: what does a week look like?
================================================

The data are car thefts in New York City in each of the 168 hours of the week, over four years. A
kernel says which inputs are similar: hours that are close on the clock, close in the week, or both.
Sums and products of kernels are kernels, and print as they were written.
"""

import matplotlib.pyplot as plt
import numpy as np

from hplus import Constant, KernelRegressor, Periodic, datasets

hours = datasets.thefts().X[:, 2]
week = (hours + 48) % 168  # 1 January 2014 was a Wednesday; 0 is Monday
counts = np.bincount(week.astype(int), minlength=168)
x = np.arange(0.5, 168)[:, None]

daily, weekly = Periodic(24.0, 0.7), Periodic(168.0, 0.3)
fig, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
ax.step(x[:, 0], counts / 208.7, where="mid", color="#8c8c8c", lw=1, label="observed")
for kernel, colour in ((daily, "#d55e00"), (daily + daily * weekly, "#0072b2")):
    model = KernelRegressor(kernel + Constant(10.0), loss="poisson_log", penalty=1e-4)
    model.fit(x, counts, exposure=np.full(168, 208.7))
    ax.plot(x[:, 0], model.predict(x), color=colour, lw=2, label=str(kernel))
    print(kernel, f"explains {model.score(x, counts / 208.7):.0%} of the variance")
ax.set_xticks(np.arange(0, 168, 24), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], ha="left")
ax.set(ylabel="thefts per hour", xlim=(0, 168), ylim=(0, 4.2))
ax.legend(frameon=False, loc="upper left", fontsize="small")
plt.show()
